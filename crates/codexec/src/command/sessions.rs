//! `codexec sessions`.

mod cells;
mod line_reader;
mod open;

use std::io::Write as _;
use std::process::ExitCode;

use codexec_functions::OwnFunction;
use serde_json::{Value, json};

use super::own_functions::OwnFunctions;
use super::terminal_text::{field, items, table, timestamp};
use crate::cli::sessions::SessionsCommand;
use crate::parts::Parts;

pub(super) async fn run(parts: Parts, args: SessionsCommand) -> anyhow::Result<ExitCode> {
    match args {
        SessionsCommand::List(args) => {
            let args_json = json!({"limit": args.limit});
            OwnFunctions::new(parts)?
                .call_and_print(OwnFunction::SessionHistory, args_json, args.json, print_list)
                .await
        }
        SessionsCommand::Open(args) => open::run(parts, args).await,
    }
}

fn print_list(value: &Value) -> anyhow::Result<ExitCode> {
    let sessions = items(value, "sessions");
    if sessions.is_empty() {
        writeln!(std::io::stderr(), "there are no sessions yet")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |session: &Value| {
        let is_open = field(session, "ended_at").is_empty();
        vec![
            field(session, "session_id"),
            field(session, "language"),
            timestamp(session, "started_at"),
            if is_open { "open".to_owned() } else { field(session, "reason") },
            field(session, "executions_count"),
            field(session, "name"),
        ]
    };
    let rows: Vec<Vec<String>> = sessions.iter().map(row).collect();
    let head = ["SESSION", "LANGUAGE", "STARTED", "STATE", "RUNS", "NAME"];
    write!(std::io::stdout(), "{}", table(&head, &rows))?;
    Ok(ExitCode::SUCCESS)
}
