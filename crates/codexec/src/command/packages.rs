use std::io::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::own::Own;
use super::shown::{brief, field, items, seen, table};
use crate::cli::packages::{Install, Packages};
use crate::parts::Parts;

pub(super) async fn run(parts: Parts, args: Packages) -> anyhow::Result<ExitCode> {
    let own = Own::new(parts)?;
    match args {
        Packages::Install(args) => {
            let done = install(&own, args).await;
            own.app.shutdown().await;
            done
        }
        Packages::List(args) => {
            let asked = json!({"language": args.language});
            own.answer("list_packages", asked, args.json, print).await
        }
    }
}

async fn install(own: &Own, args: Install) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    for package in args.packages {
        writeln!(std::io::stderr(), "installing {} ..", brief(&package, 100))?;
        let asked = json!({"package": package, "language": args.language});
        let value = match own.ask("install_package", asked).await {
            Ok(owned) => owned.value,
            Err(refused) => return refused.exit_code(),
        };
        if args.json {
            writeln!(out, "{value}")?;
            continue;
        }
        let (name, version) = (field(&value, "package"), field(&value, "version"));
        writeln!(out, "{} {}", brief(&name, 100), brief(&version, 100))?;
        let said = field(&value, "install_output");
        if !said.is_empty() {
            writeln!(std::io::stderr(), "{}", seen(said.trim_end()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(value: &Value) -> anyhow::Result<ExitCode> {
    let packages = items(value, "packages");
    if packages.is_empty() {
        let hint = "install one with `codexec packages install`";
        writeln!(std::io::stderr(), "no packages are installed; {hint}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |package: &Value| {
        let cell = |name| brief(&field(package, name), 100);
        vec![cell("package"), cell("version"), cell("language")]
    };
    let rows: Vec<Vec<String>> = packages.iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&["PACKAGE", "VERSION", "LANGUAGE"], &rows))?;
    Ok(ExitCode::SUCCESS)
}
