use std::io::Write as _;
use std::process::ExitCode;

use codexec_functions::OwnFunction;
use serde_json::{Value, json};

use super::own_functions::OwnFunctions;
use super::terminal_text::{escape_hidden, field, items, one_line, table, timestamp};
use crate::cli::logs::{LogsArgs, LogsCommand, SearchArgs};
use crate::parts::Parts;

const CODE_CHARS: usize = 60;

pub(super) async fn run(parts: Parts, args: LogsArgs) -> anyhow::Result<ExitCode> {
    let own = OwnFunctions::new(parts)?;
    match args.command {
        Some(LogsCommand::Show(args)) => {
            let args_json = json!({"execution_id": args.id});
            own.call_and_print(OwnFunction::GetExecutionLog, args_json, args.json, print_whole)
                .await
        }
        None => search(own, args.search).await,
    }
}

async fn search(own: OwnFunctions, args: SearchArgs) -> anyhow::Result<ExitCode> {
    let words = args.words.join(" ");
    let args_json = json!({
        "query": (!words.is_empty()).then_some(words),
        "language": args.language,
        "status": args.status,
        "since": args.since,
        "until": args.until,
        "session_id": args.session,
        "tool": args.tool,
        "limit": args.limit,
        "offset": args.offset,
    });
    let offset = args.offset;
    own.call_and_print(OwnFunction::SearchExecutionLogs, args_json, args.json, move |page| {
        print_page(page, offset)
    })
    .await
}

fn print_page(page: &Value, offset: u64) -> anyhow::Result<ExitCode> {
    let found = items(page, "results");
    if found.is_empty() {
        writeln!(std::io::stderr(), "no execution matches")?;
        return Ok(ExitCode::FAILURE);
    }
    let row = |log: &Value| {
        vec![
            field(log, "execution_id"),
            timestamp(log, "executed_at"),
            field(log, "status"),
            field(log, "language"),
            milliseconds(log),
            one_line(&field(log, "code_preview"), CODE_CHARS),
        ]
    };
    let rows: Vec<Vec<String>> = found.iter().map(row).collect();
    let head = ["EXECUTION", "STARTED (UTC)", "STATUS", "LANGUAGE", "MS", "CODE"];
    write!(std::io::stdout(), "{}", table(&head, &rows))?;
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
