//! `codexec scripts`.

mod run;
mod save;

use std::io::Write as _;
use std::process::ExitCode;

use codexec_functions::OwnFunction;
use serde_json::{Value, json};

use super::own_functions::OwnFunctions;
use super::terminal_text::{escape_hidden, field, items, one_line, table, timestamp};
use crate::cli::scripts::{ScriptsCommand, ShowArgs};
use crate::parts::Parts;

const DESCRIPTION_CHARS: usize = 70;

pub(super) async fn run(parts: Parts, args: ScriptsCommand) -> anyhow::Result<ExitCode> {
    match args {
        ScriptsCommand::List(args) => {
            let args_json = json!({
                "language": args.language, "tag": args.tag, "limit": args.limit,
                "offset": args.offset,
            });
            OwnFunctions::new(parts)?
                .call_and_print(OwnFunction::ListScripts, args_json, args.json, print_list)
                .await
        }
        ScriptsCommand::Search(args) => {
            let args_json = json!({"query": args.query.join(" "), "limit": args.limit});
            OwnFunctions::new(parts)?
                .call_and_print(OwnFunction::SearchScripts, args_json, args.json, print_matches)
                .await
        }
        ScriptsCommand::Show(args) => {
            let args_json = json!({"name": args.name, "version": args.version});
            let as_json = args.json;
            let print = move |script: &Value| print_script(script, &args);
            OwnFunctions::new(parts)?
                .call_and_print(OwnFunction::GetScript, args_json, as_json, print)
                .await
        }
        ScriptsCommand::Delete(args) => {
            let print_nothing = |_: &Value| Ok(ExitCode::SUCCESS);
            let args_json = json!({"name": args.name});
            OwnFunctions::new(parts)?
                .call_and_print(OwnFunction::DeleteScript, args_json, args.json, print_nothing)
                .await
        }
        ScriptsCommand::Versions(args) => {
            let args_json = json!({"name": args.name});
            OwnFunctions::new(parts)?
                .call_and_print(
                    OwnFunction::ListScriptVersions,
                    args_json,
                    args.json,
                    print_versions,
                )
                .await
        }
        ScriptsCommand::Save(args) => save::run(parts, args).await,
        ScriptsCommand::Run(args) => run::run(parts, args).await,
    }
}

fn print_list(value: &Value) -> anyhow::Result<ExitCode> {
    for note in items(value, "notes") {
        let text = note.as_str().unwrap_or_default();
        writeln!(std::io::stderr(), "{}", escape_hidden(text))?;
    }
    let scripts = items(value, "scripts");
    if scripts.is_empty() {
        let hint = "save one with `codexec scripts save`";
        writeln!(std::io::stderr(), "no scripts found; {hint}")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |script: &Value| {
        vec![
            field(script, "name"),
            field(script, "language"),
            timestamp(script, "last_run_at"),
            one_line(&field(script, "tags"), 30),
            one_line(&field(script, "description"), DESCRIPTION_CHARS),
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

fn print_matches(value: &Value) -> anyhow::Result<ExitCode> {
    let results = items(value, "results");
    if results.is_empty() {
        writeln!(std::io::stderr(), "no script matches; try other words")?;
        return Ok(ExitCode::FAILURE);
    }
    let row = |script: &Value| {
        let description = one_line(&field(script, "description"), DESCRIPTION_CHARS);
        vec![field(script, "name"), field(script, "language"), description]
    };
    let rows: Vec<Vec<String>> = results.iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&["NAME", "LANGUAGE", "DESCRIPTION"], &rows))?;
    Ok(ExitCode::SUCCESS)
}

fn print_script(script: &Value, args: &ShowArgs) -> anyhow::Result<ExitCode> {
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
            writeln!(out, "{name:19} {}", one_line(&text, 1_000))?;
        }
    }
    writeln!(out, "\n{}", escape_hidden(code.trim_end_matches('\n')))?;
    Ok(ExitCode::SUCCESS)
}

fn print_versions(value: &Value) -> anyhow::Result<ExitCode> {
    let row = |version: &Value| {
        let is_current = version.get("is_current").and_then(Value::as_bool) == Some(true);
        vec![
            field(version, "version"),
            timestamp(version, "saved_at"),
            field(version, "language"),
            if is_current { "current".to_owned() } else { String::new() },
        ]
    };
    let rows: Vec<Vec<String>> = items(value, "versions").iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&["VERSION", "SAVED (UTC)", "LANGUAGE", ""], &rows))?;
    Ok(ExitCode::SUCCESS)
}
