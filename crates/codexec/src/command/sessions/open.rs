use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_types::Language;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::own::{Own, Refused};
use super::super::shown::field;
use super::super::{given, ran};
use super::cells::Cells;
use crate::cli::sessions::Open;
use crate::parts::Parts;

/// One session, from its first cell to the end of the input.
struct Desk {
    own: Own,
    session: String,
    timeout_ms: Option<u64>,
    as_json: bool,
    has_failed: bool,
}

/// Whether there is somebody to send more to.
#[derive(PartialEq)]
enum After {
    GoOn,
    Over,
}

pub(super) async fn run(mut parts: Parts, args: Open) -> anyhow::Result<ExitCode> {
    let language = given::language(&args.language)?;
    let working_dir = args.working_dir.as_deref().map(given::working_dir).transpose()?;
    parts.allow_working_dir(working_dir.clone());
    let own = Own::new(parts)?;
    let asked = json!({"language": language.name(), "working_dir": working_dir});
    let session = match own.ask("start_session", asked).await {
        Ok(owned) => field(&owned.value, "session_id"),
        Err(refused) => {
            own.app.shutdown().await;
            return refused.exit_code();
        }
    };
    let timeout_ms = given::milliseconds(args.timeout);
    let mut desk = Desk { own, session, timeout_ms, as_json: args.json, has_failed: false };
    let done = desk.work(language).await;
    // Shutting down would end it too, but this end has the right reason.
    let closed = json!({"session_id": desk.session});
    let _ = desk.own.ask("close_session", closed).await;
    desk.own.app.shutdown().await;
    done?;
    Ok(if desk.has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Desk {
    async fn work(&mut self, language: Language) -> anyhow::Result<()> {
        let is_typed = std::io::stdin().is_terminal();
        let mut cells = Cells::new(language, is_typed);
        let mut lines = lines();
        if is_typed {
            writeln!(std::io::stderr(), "a {language} session; Ctrl-D ends it")?;
        }
        loop {
            if is_typed {
                let prompt = if cells.is_begun() { "... " } else { ">>> " };
                write!(std::io::stderr(), "{prompt}")?;
            }
            let line = tokio::select! {
                line = lines.recv() => line.transpose().context("standard input is not UTF-8")?,
                _ = tokio::signal::ctrl_c(), if is_typed => {
                    cells.rest();
                    writeln!(std::io::stderr())?;
                    continue;
                }
            };
            let Some(line) = line else { break };
            if let Some(cell) = cells.push(&line)
                && self.send(cell).await? == After::Over
            {
                return Ok(());
            }
        }
        if let Some(cell) = cells.rest() {
            self.send(cell).await?;
        }
        Ok(())
    }

    async fn send(&mut self, code: String) -> anyhow::Result<After> {
        let asked =
            json!({"session_id": self.session, "code": code, "timeout_ms": self.timeout_ms});
        let owned = match self.own.ask("send_to_session", asked).await {
            Ok(owned) => owned,
            Err(Refused { code, message }) => {
                self.has_failed = true;
                writeln!(std::io::stderr(), "{message}")?;
                // Another cell may be fine; a session that is gone is gone.
                return Ok(if code.starts_with("SESSION_") { After::Over } else { After::GoOn });
            }
        };
        self.has_failed |= owned.is_failure;
        self.print(&owned.value, owned.images.len())?;
        match owned.value.get("session_ended").and_then(Value::as_str) {
            Some(reason) => {
                writeln!(std::io::stderr(), "the session has ended: {reason}")?;
                Ok(After::Over)
            }
            None => Ok(After::GoOn),
        }
    }

    fn print(&self, value: &Value, images: usize) -> anyhow::Result<()> {
        if self.as_json {
            writeln!(std::io::stdout(), "{value}")?;
            return Ok(());
        }
        ran::print(value)?;
        if images > 0 {
            writeln!(std::io::stderr(), "[{images} pictures]")?;
        }
        Ok(())
    }
}

/// Read in a thread of its own: nothing else can wait for a terminal.
fn lines() -> mpsc::Receiver<std::io::Result<String>> {
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
