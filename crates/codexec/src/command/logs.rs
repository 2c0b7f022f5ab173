mod follow;
mod id_prefix;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use codexec_functions::OwnFunction;
use serde_json::{Value, json};

use super::own_functions::OwnFunctions;
use super::terminal_text::{
    escape_hidden, field, items, local_time_to_utc, one_line, table, timestamp,
};
use crate::cli::logs::{LogsArgs, LogsCommand, SearchArgs};
use crate::parts::Parts;

const CODE_CHARS: usize = 60;
/// `exec_` and enough digits to tell executions apart.
const SHORT_ID_CHARS: usize = 13;
const WHOLE_ID_CHARS: usize = 37;
const HEAD: [&str; 6] = ["EXECUTION", "STARTED", "STATUS", "LANGUAGE", "MS", "CODE"];

pub(super) async fn run(parts: Parts, args: LogsArgs) -> anyhow::Result<ExitCode> {
    let own = OwnFunctions::new(parts)?;
    match args.command {
        Some(LogsCommand::Show(args)) => {
            let id = match id_prefix::resolve(&own, &args.id).await {
                Ok(id) => id,
                Err(error) => {
                    own.app.shutdown().await;
                    return error.exit_code();
                }
            };
            let args_json = json!({"execution_id": id});
            own.call_and_print(OwnFunction::GetExecutionLog, args_json, args.json, print_whole)
                .await
        }
        None if args.search.follow => follow::run(&own, &args.search).await,
        None => search(own, &args.search).await,
    }
}

fn search_arguments(args: &SearchArgs) -> Value {
    let words = args.words.join(" ");
    json!({
        "query": (!words.is_empty()).then_some(words),
        "language": args.language,
        "status": args.status,
        "since": args.since.as_deref().map(local_time_to_utc),
        "until": args.until.as_deref().map(local_time_to_utc),
        "session_id": args.session,
        "tool": args.tool,
        "limit": args.limit,
        "offset": args.offset,
    })
}

async fn search(own: OwnFunctions, args: &SearchArgs) -> anyhow::Result<ExitCode> {
    let (arguments, offset) = (search_arguments(args), args.offset);
    own.call_and_print(OwnFunction::SearchExecutionLogs, arguments, args.json, move |page| {
        print_page(page, offset)
    })
    .await
}

/// Returns the cells of an execution. A terminal gets the beginning of the id, which is enough for
/// `codexec logs show`.
fn row(log: &Value) -> Vec<String> {
    let mut id = field(log, "execution_id");
    if std::io::stdout().is_terminal() {
        id = id.chars().take(SHORT_ID_CHARS).collect();
    }
    vec![
        id,
        timestamp(log, "executed_at"),
        field(log, "status"),
        field(log, "language"),
        milliseconds(log),
        one_line(&field(log, "code_preview"), CODE_CHARS),
    ]
}

/// Prints the rows with fixed widths, so that more rows can follow.
fn print_rows(rows: &[Vec<String>], has_head: bool) -> std::io::Result<()> {
    let is_terminal = std::io::stdout().is_terminal();
    let id_chars = if is_terminal { SHORT_ID_CHARS } else { WHOLE_ID_CHARS };
    let widths = [id_chars, 19, 11, 10, 7, 0];
    let pad = |row: &Vec<String>| {
        let cells = row.iter().zip(widths);
        cells.map(|(cell, width)| format!("{cell:width$}")).collect::<Vec<_>>()
    };
    let padded: Vec<Vec<String>> = rows.iter().map(pad).collect();
    let head = pad(&HEAD.map(str::to_owned).to_vec());
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let text = table(&head, &padded);
    let text = if has_head { text.as_str() } else { text.split_once('\n').unwrap_or_default().1 };
    write!(std::io::stdout(), "{text}")
}

fn print_page(page: &Value, offset: u64) -> anyhow::Result<ExitCode> {
    let found = items(page, "results");
    if found.is_empty() {
        writeln!(std::io::stderr(), "no execution matches")?;
        return Ok(ExitCode::FAILURE);
    }
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    write!(std::io::stdout(), "{}", table(&HEAD, &rows))?;
    let total = page.get("total_count").and_then(Value::as_u64).unwrap_or(0);
    let last = offset + found.len() as u64;
    if total > last {
        writeln!(
            std::io::stderr(),
            "{} to {last} of {total}; more with --offset {last}",
            offset + 1
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_whole(log: &Value) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout();
    let facts = [
        "execution_id",
        "session_id",
        "language",
        "status",
        "executed_at",
        "duration_ms",
        "exit_code",
        "error_code",
        "script",
        "script_version",
        "working_dir",
        "memory_peak_mb",
        "sandbox_layers",
        "limits_met",
        "allowed_tools",
        "grants",
        "packages_installed",
        "artifacts_created",
        "artifacts_modified",
        "artifacts_deleted",
        "agent_id",
        "trace_id",
        "chat_id",
    ];
    for name in facts {
        let text = field(log, name);
        if !text.is_empty() {
            let text = if name == "executed_at" { timestamp(log, name) } else { text };
            writeln!(out, "{name:18} {}", one_line(&text, 500))?;
        }
    }
    for call in items(log, "tool_calls") {
        let (server, tool) = (field(call, "server"), field(call, "tool"));
        let (ms, error) = (milliseconds(call), field(call, "error_code"));
        writeln!(
            out,
            "{:18} {}.{} {ms} ms {error}",
            "tool call",
            one_line(&server, 80),
            one_line(&tool, 80)
        )?;
    }
    for part in ["code", "stdout", "stderr", "result", "error"] {
        let text = field(log, part);
        if !text.is_empty() {
            writeln!(out, "\n[{part}]\n{}", escape_hidden(text.trim_end_matches('\n')))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn milliseconds(value: &Value) -> String {
    let ms = value.get("duration_ms").and_then(Value::as_f64);
    ms.map_or_else(String::new, |ms| format!("{ms:.0}"))
}
