//! Cells: the pieces of code that a session runs, one at a time.
//!
//! The guest's first process reports the end of a cell over the socket, with the key that came with
//! the cell. No printed text can be mistaken for the report, no other process can send it, and
//! forged reports can only end the guest's own cell.

use std::time::Duration;

use codexec_types::{Admitted, Cell, CellEnding, Json, Outcome, Thrown, ThrownCode, ToGuest};
use tokio::time::Instant;

use super::SessionEnd;
use super::idle::IDLE_CHECK_INTERVAL;
use crate::run::body::{BodyEvent, Interrupt, WORK};
use crate::run::conversation::Breach;
use crate::run::{CHECK_INTERVAL, Run, RunState};

/// How long a cell may take to stop after it was interrupted.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// The longest part of a guest's path that a message shows.
const PATH_BYTES: usize = 1 << 10;

impl Run {
    /// Starts a cell in an idle session. [`Run::next`] returns its events; after its
    /// [`RunEvent::Ended`](codexec_types::RunEvent::Ended), the session takes the next cell unless [`Run::session_end`] returns a
    /// reason. The caller drops answers to asks of a cell that has ended.
    pub fn send(&mut self, admitted: &Admitted, number: u32) -> Result<(), SessionEnd> {
        self.collect_late_output();
        let now = Instant::now();
        let Some(session) = &mut self.session else { return Err(SessionEnd::Closed) };
        if let Some(end) = session.end {
            return Err(end);
        }
        debug_assert!(matches!(self.state, RunState::Ended(_)), "one cell at a time");
        session.key = generate_key();
        let key = session.key.clone();
        self.conversation.events = session.late_output.take_since_last_reply();
        if !self.conversation.usage.is_fresh(now, CHECK_INTERVAL) {
            self.start_counting();
        }
        let limits = admitted.limits();
        self.conversation.restart(limits, now);
        self.state = RunState::Running;
        let cell = ToGuest::Cell(Cell {
            number,
            key,
            code: admitted.code().to_owned(),
            input: admitted.input().clone(),
            args: admitted.args().to_vec(),
        });
        let sent = match self.body.begin_cell(limits.memory_bytes) {
            Ok(fds) => self.conversation.send(&cell, fds),
            Err(_) => Err(Breach::BadFrame),
        };
        if let Err(breach) = sent {
            self.stop_for(breach);
        }
        Ok(())
    }

    /// Asks the guest to stop its cell. The session continues if the cell stops.
    ///
    /// THREAT[SES-3]: a cell that does not stop in time is killed together with its session.
    pub(in crate::run) fn interrupt_cell(&mut self, outcome: Outcome) {
        match &self.state {
            RunState::Running => {
                self.conversation.send_interrupt();
                // Code that computes does not read its socket, so it gets a signal too.
                match self.body.interrupt() {
                    Interrupt::Sent => {
                        let until = Instant::now() + STOP_GRACE;
                        self.state = RunState::Interrupted(outcome, until);
                    }
                    Interrupt::Ignored => self.end(outcome),
                }
            }
            // The guest is already stopping; the first reason is the one that is reported.
            RunState::Terminating(..)
            | RunState::Interrupted(..)
            | RunState::Dying(..)
            | RunState::Ended(_) => {}
        }
    }

    /// THREAT[SES-1]: only a report with the key of the current cell ends it; others are counted
    /// and ignored.
    pub(in crate::run) fn accept_end_of_cell(
        &mut self,
        key: &str,
        ending: CellEnding,
    ) -> Result<(), Breach> {
        if self.session.as_ref().is_none_or(|session| session.key != key) {
            return self.conversation.spend_question(Breach::BadFrame);
        }
        self.collect_rest_of_cell();
        self.body.end_cell();
        if let Some(session) = &mut self.session {
            // Invalidates the key, so that a repeated report has no effect.
            session.key = generate_key();
            self.conversation.events.extend(session.late_output.take_meanwhile());
        }
        let outcome = match &self.state {
            RunState::Interrupted(outcome, _) | RunState::Terminating(outcome, _) => {
                outcome.clone()
            }
            RunState::Running | RunState::Dying(..) | RunState::Ended(_) => {
                self.judge_ending(ending)
            }
        };
        self.conversation.refuse_unanswered();
        // The next cell is counted from here.
        self.body.begin_idle(IDLE_CHECK_INTERVAL);
        self.start_counting();
        self.conversation.limits_met.extend(self.body.take_reached_limits());
        if self.body.is_usable_after(&outcome) {
            self.state = RunState::Ended(outcome);
        } else {
            self.end(outcome);
        }
        Ok(())
    }

    /// Reads the output that the guest flushed before it reported the end of the cell.
    fn collect_rest_of_cell(&mut self) {
        let Run { conversation, body, session, .. } = self;
        let mut breach = None;
        body.read_rest_of_cell(|event| match event {
            BodyEvent::Output(stream, text, bytes) => {
                match conversation.accept_output(stream, text, bytes) {
                    Ok(event) => conversation.events.extend(event),
                    Err(reached) => breach = Some(reached),
                }
            }
            BodyEvent::LateOutput(stream, text) => {
                if let Some(session) = session {
                    session.store_late_output(stream, &text);
                }
            }
            BodyEvent::CheckDue | BodyEvent::Ended(_) => {}
        });
        if let Some(breach) = breach {
            self.stop_for(breach);
        }
    }

    fn judge_ending(&self, ending: CellEnding) -> Outcome {
        match ending {
            CellEnding::Returned(value) => Outcome::Returned(value),
            CellEnding::Threw(thrown) => self.body.judge_thrown(thrown, &self.observed()),
            CellEnding::Exited(0) => Outcome::Returned(Json::null()),
            CellEnding::Exited(code) => Outcome::Exited { code },
            CellEnding::DirectoryGone(path) => Outcome::Threw(Thrown {
                code: ThrownCode::RuntimeError,
                message: describe_missing_directory(&path),
                at: None,
                stack: None,
            }),
            // No interrupt was sent by the host.
            CellEnding::Interrupted => Outcome::Threw(Thrown {
                code: ThrownCode::RuntimeError,
                message: "the code interrupted itself".to_owned(),
                at: None,
                stack: None,
            }),
        }
    }
}

/// Describes why a cell did not run: the session's current directory is gone.
fn describe_missing_directory(path: &str) -> String {
    let path = path.get(..path.floor_char_boundary(PATH_BYTES)).unwrap_or_default();
    format!(
        "the session's current directory {path} is gone, so this code was not run; the session \
         is in {WORK} now, its working directory"
    )
}

/// Returns 128 random bits in hex, or an empty key if there is no randomness.
fn generate_key() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_or_else(
        |_| String::new(),
        |()| bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    )
}
