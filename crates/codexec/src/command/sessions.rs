//! `codexec sessions`.

mod cells;
mod open;

use std::io::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::own::Own;
use super::shown::{field, items, moment, table};
use crate::cli::sessions::Sessions;
use crate::parts::Parts;

pub(super) async fn run(parts: Parts, args: Sessions) -> anyhow::Result<ExitCode> {
    match args {
        Sessions::List(args) => {
            let asked = json!({"limit": args.limit});
            Own::new(parts)?.answer("session_history", asked, args.json, list).await
        }
        Sessions::Open(args) => open::run(parts, args).await,
    }
}

fn list(value: &Value) -> anyhow::Result<ExitCode> {
    let sessions = items(value, "sessions");
    if sessions.is_empty() {
        writeln!(std::io::stderr(), "there were no sessions yet")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |session: &Value| {
        let is_open = field(session, "ended_at").is_empty();
        vec![
            field(session, "session_id"),
            field(session, "language"),
            moment(session, "started_at"),
            if is_open { "open".to_owned() } else { field(session, "reason") },
            field(session, "executions_count"),
            field(session, "name"),
        ]
    };
    let rows: Vec<Vec<String>> = sessions.iter().map(row).collect();
    let head = ["SESSION", "LANGUAGE", "STARTED (UTC)", "STATE", "RUNS", "NAME"];
    write!(std::io::stdout(), "{}", table(&head, &rows))?;
    Ok(ExitCode::SUCCESS)
}
