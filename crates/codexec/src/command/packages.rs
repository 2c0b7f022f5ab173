use std::io::Write as _;
use std::process::ExitCode;

use codexec_functions::OwnFunction;
use serde_json::{Value, json};

use super::arguments;
use super::own_functions::{FunctionError, OwnFunctions};
use super::terminal_text::{escape_hidden, field, items, one_line, table};
use crate::cli::packages::{InstallArgs, PackagesCommand, RemoveArgs};
use crate::parts::Parts;

pub(super) async fn run(parts: Parts, args: PackagesCommand) -> anyhow::Result<ExitCode> {
    let own = OwnFunctions::new(parts)?;
    match args {
        PackagesCommand::Install(args) => {
            let done = install(&own, args).await;
            own.app.shutdown().await;
            done
        }
        PackagesCommand::Remove(args) => {
            let done = remove(&own, args).await;
            own.app.shutdown().await;
            done
        }
        PackagesCommand::List(args) => {
            let args_json = json!({"language": args.language});
            own.call_and_print(OwnFunction::ListPackages, args_json, args.json, print_list).await
        }
    }
}

async fn install(own: &OwnFunctions, args: InstallArgs) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    for package in args.packages {
        writeln!(std::io::stderr(), "installing {} ..", one_line(&package, 100))?;
        let args_json = json!({"package": package, "language": args.language});
        let value = match own.call(OwnFunction::InstallPackage, args_json).await {
            Ok(owned) => owned.value,
            Err(error) => return error.exit_code(),
        };
        if args.json {
            writeln!(out, "{value}")?;
            continue;
        }
        let (name, version) = (field(&value, "package"), field(&value, "version"));
        writeln!(out, "{} {}", one_line(&name, 100), one_line(&version, 100))?;
        let installer_output = field(&value, "install_output");
        if !installer_output.is_empty() {
            writeln!(std::io::stderr(), "{}", escape_hidden(installer_output.trim_end()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn remove(own: &OwnFunctions, args: RemoveArgs) -> anyhow::Result<ExitCode> {
    let language = arguments::parse_language(&args.language)?;
    let client = own.client();
    for package in args.packages {
        match own.app.remove_package(language, &package, &client).await {
            Ok((name, version)) => {
                let (name, version) = (one_line(&name, 100), one_line(&version, 100));
                writeln!(std::io::stdout(), "removed {name} {version}")?;
            }
            Err(error) => return FunctionError::new(&error).exit_code(),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_list(value: &Value) -> anyhow::Result<ExitCode> {
    let packages = items(value, "packages");
    if packages.is_empty() {
        let hint = "install one with `codexec packages install`";
        writeln!(std::io::stderr(), "no packages are installed; {hint}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |package: &Value| {
        let cell = |name| one_line(&field(package, name), 100);
        vec![cell("package"), cell("version"), cell("language")]
    };
    let rows: Vec<Vec<String>> = packages.iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&["PACKAGE", "VERSION", "LANGUAGE"], &rows))?;
    Ok(ExitCode::SUCCESS)
}
