//! `codexec scripts`.

mod run;
mod save;

use std::io::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::own::Own;
use super::shown::{brief, field, items, moment, seen, table};
use crate::cli::scripts::{Scripts, Show};
use crate::parts::Parts;

const DESCRIPTION_CHARS: usize = 70;

pub(super) async fn run(parts: Parts, args: Scripts) -> anyhow::Result<ExitCode> {
    match args {
        Scripts::List(args) => {
            let asked = json!({
                "language": args.language, "tag": args.tag, "limit": args.limit,
                "offset": args.offset,
            });
            Own::new(parts)?.answer("list_scripts", asked, args.json, list).await
        }
        Scripts::Search(args) => {
            let asked = json!({"query": args.query.join(" "), "limit": args.limit});
            Own::new(parts)?.answer("search_scripts", asked, args.json, found).await
        }
        Scripts::Show(args) => {
            let asked = json!({"name": args.name, "version": args.version});
            let as_json = args.json;
            let print = move |script: &Value| show(script, &args);
            Own::new(parts)?.answer("get_script", asked, as_json, print).await
        }
        Scripts::Delete(args) => {
            let said = |_: &Value| Ok(ExitCode::SUCCESS);
            let asked = json!({"name": args.name});
            Own::new(parts)?.answer("delete_script", asked, args.json, said).await
        }
        Scripts::Versions(args) => {
            let asked = json!({"name": args.name});
            Own::new(parts)?.answer("list_script_versions", asked, args.json, versions).await
        }
        Scripts::Save(args) => save::run(parts, args).await,
        Scripts::Run(args) => run::run(parts, args).await,
    }
}

fn list(value: &Value) -> anyhow::Result<ExitCode> {
    for note in items(value, "notes") {
        let text = note.as_str().unwrap_or_default();
        writeln!(std::io::stderr(), "{}", seen(text))?;
    }
    let scripts = items(value, "scripts");
    if scripts.is_empty() {
        let hint = "keep one with `codexec scripts save`";
        writeln!(std::io::stderr(), "there are no such scripts; {hint}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |script: &Value| {
        vec![
            field(script, "name"),
            field(script, "language"),
            moment(script, "last_run_at"),
            brief(&field(script, "tags"), 30),
            brief(&field(script, "description"), DESCRIPTION_CHARS),
        ]
    };
    let rows: Vec<Vec<String>> = scripts.iter().map(row).collect();
    let head = ["NAME", "LANGUAGE", "LAST RUN (UTC)", "TAGS", "DESCRIPTION"];
    write!(std::io::stdout(), "{}", table(&head, &rows))?;
    let total = value.get("total_count").and_then(Value::as_u64).unwrap_or(0);
    if total > scripts.len() as u64 {
        writeln!(std::io::stderr(), "{} of {total}; more with --offset", scripts.len())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn found(value: &Value) -> anyhow::Result<ExitCode> {
    let results = items(value, "results");
    if results.is_empty() {
        writeln!(std::io::stderr(), "no script matches; try other words")?;
        return Ok(ExitCode::FAILURE);
    }
    let row = |script: &Value| {
        let description = brief(&field(script, "description"), DESCRIPTION_CHARS);
        vec![field(script, "name"), field(script, "language"), description]
    };
    let rows: Vec<Vec<String>> = results.iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&["NAME", "LANGUAGE", "DESCRIPTION"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn show(script: &Value, args: &Show) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    let code = field(script, "code");
    if args.code {
        write!(out, "{code}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let facts = [
        "name",
        "description",
        "language",
        "version",
        "tags",
        "packages",
        "parameters",
        "created_at",
        "last_run_at",
        "run_count",
        "last_run_success",
        "source_execution_id",
        "expose",
    ];
    for name in facts {
        let text = field(script, name);
        if !text.is_empty() {
            writeln!(out, "{name:19} {}", brief(&text, 1_000))?;
        }
    }
    writeln!(out, "\n{}", seen(code.trim_end_matches('\n')))?;
    Ok(ExitCode::SUCCESS)
}

fn versions(value: &Value) -> anyhow::Result<ExitCode> {
    let row = |version: &Value| {
        let is_current = version.get("is_current").and_then(Value::as_bool) == Some(true);
        vec![
            field(version, "version"),
            moment(version, "saved_at"),
            field(version, "language"),
            if is_current { "current".to_owned() } else { String::new() },
        ]
    };
    let rows: Vec<Vec<String>> = items(value, "versions").iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&["VERSION", "SAVED (UTC)", "LANGUAGE", ""], &rows))?;
    Ok(ExitCode::SUCCESS)
}
