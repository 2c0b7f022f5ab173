use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use codexec_functions::OwnFunction;
use codexec_types::Language;
use serde_json::{Value, json};

use super::super::own_functions::{FunctionError, OwnFunctions};
use super::super::terminal_text::field;
use super::super::{arguments, execution_output};
use super::cells::CellSplitter;
use super::line_reader::{InputLine, LineReader};
use crate::cli::sessions::OpenArgs;
use crate::parts::Parts;

/// A session that the user types into, from its first cell to the end of the input.
struct InteractiveSession {
    own: OwnFunctions,
    session: String,
    timeout_ms: Option<u64>,
    as_json: bool,
    has_failed: bool,
    /// The file with the lines that were typed in earlier sessions.
    history: PathBuf,
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
    let history = parts.home.join(format!("history-{}", language.name()));
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
    let mut interactive = InteractiveSession {
        own,
        session,
        timeout_ms,
        as_json: args.json,
        has_failed: false,
        history,
    };
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
        let mut lines = LineReader::start(is_typed, self.history.clone());
        if is_typed {
            writeln!(std::io::stderr(), "a {language} session; exit() or Ctrl-D ends it")?;
        }
        loop {
            let line = match lines.next(cells.has_pending()).await? {
                InputLine::Text(line) => line,
                InputLine::Interrupted => {
                    cells.take_rest();
                    continue;
                }
                InputLine::End => break,
            };
            if is_typed && !cells.has_pending() && is_exit(&line) {
                return Ok(());
            }
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

/// True for the ways to leave the prompts of other languages.
fn is_exit(line: &str) -> bool {
    let line = line.trim().trim_end_matches(';');
    matches!(line, "exit" | "exit()" | "quit" | "quit()" | ".exit" | "logout")
}
