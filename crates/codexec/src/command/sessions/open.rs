use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_functions::OwnFunction;
use codexec_types::Language;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::own_functions::{FunctionError, OwnFunctions};
use super::super::terminal_text::field;
use super::super::{arguments, execution_output};
use super::cells::CellSplitter;
use crate::cli::sessions::OpenArgs;
use crate::parts::Parts;

/// A session that the user types into, from its first cell to the end of the input.
struct InteractiveSession {
    own: OwnFunctions,
    session: String,
    timeout_ms: Option<u64>,
    as_json: bool,
    has_failed: bool,
}

/// The state of the session after a cell.
#[derive(PartialEq)]
enum AfterCell {
    Open,
    Ended,
}

pub(super) async fn run(mut parts: Parts, args: OpenArgs) -> anyhow::Result<ExitCode> {
    let language = arguments::parse_language(&args.language)?;
    let working_dir = args.working_dir.as_deref().map(arguments::absolute_dir).transpose()?;
    parts.allow_working_dir(working_dir.clone());
    let own = OwnFunctions::new(parts)?;
    let args_json = json!({"language": language.name(), "working_dir": working_dir});
    let session = match own.call(OwnFunction::StartSession, args_json).await {
        Ok(owned) => field(&owned.value, "session_id"),
        Err(error) => {
            own.app.shutdown().await;
            return error.exit_code();
        }
    };
    let timeout_ms = arguments::milliseconds(args.timeout);
    let mut interactive =
        InteractiveSession { own, session, timeout_ms, as_json: args.json, has_failed: false };
    let done = interactive.work(language).await;
    // Shutting down would end the session too, but record another reason.
    let closed = json!({"session_id": interactive.session});
    let _ = interactive.own.call(OwnFunction::CloseSession, closed).await;
    interactive.own.app.shutdown().await;
    done?;
    Ok(if interactive.has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl InteractiveSession {
    async fn work(&mut self, language: Language) -> anyhow::Result<()> {
        let is_typed = std::io::stdin().is_terminal();
        let mut cells = CellSplitter::new(language, is_typed);
        let mut lines = read_lines();
        if is_typed {
            writeln!(std::io::stderr(), "a {language} session; Ctrl-D ends it")?;
        }
        loop {
            if is_typed {
                let prompt = if cells.has_pending() { "... " } else { ">>> " };
                write!(std::io::stderr(), "{prompt}")?;
            }
            let line = tokio::select! {
                line = lines.recv() => line.transpose().context("standard input is not UTF-8")?,
                _ = tokio::signal::ctrl_c(), if is_typed => {
                    cells.take_rest();
                    writeln!(std::io::stderr())?;
                    continue;
                }
            };
            let Some(line) = line else { break };
            if let Some(cell) = cells.push(&line)
                && self.send(cell).await? == AfterCell::Ended
            {
                return Ok(());
            }
        }
        if let Some(cell) = cells.take_rest() {
            self.send(cell).await?;
        }
        Ok(())
    }

    async fn send(&mut self, code: String) -> anyhow::Result<AfterCell> {
        let args_json =
            json!({"session_id": self.session, "code": code, "timeout_ms": self.timeout_ms});
        let owned = match self.own.call(OwnFunction::SendToSession, args_json).await {
            Ok(owned) => owned,
            Err(FunctionError { code, message }) => {
                self.has_failed = true;
                writeln!(std::io::stderr(), "{message}")?;
                // Another cell may succeed, unless the session itself has ended.
                return Ok(if code.starts_with("SESSION_") {
                    AfterCell::Ended
                } else {
                    AfterCell::Open
                });
            }
        };
        self.has_failed |= owned.is_failure;
        self.print(&owned.value, owned.images.len())?;
        match owned.value.get("session_ended").and_then(Value::as_str) {
            Some(reason) => {
                writeln!(std::io::stderr(), "the session has ended: {reason}")?;
                Ok(AfterCell::Ended)
            }
            None => Ok(AfterCell::Open),
        }
    }

    fn print(&self, value: &Value, images: usize) -> anyhow::Result<()> {
        if self.as_json {
            writeln!(std::io::stdout(), "{value}")?;
            return Ok(());
        }
        execution_output::print(value)?;
        if images > 0 {
            writeln!(std::io::stderr(), "[{images} images]")?;
        }
        Ok(())
    }
}

/// Reads stdin in a thread: a terminal cannot be read asynchronously.
fn read_lines() -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
