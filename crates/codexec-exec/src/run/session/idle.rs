//! An idle session: between two cells its limits still apply.

use std::time::Duration;

use codexec_types::{CallCode, CallError, FromGuest, Limit, Outcome};

use super::SessionEnd;
use crate::frames::ReceivedFrame;
use crate::run::body::BodyEvent;
use crate::run::conversation::{Breach, SocketEvent};
use crate::run::{Run, RunState};

/// Interval between two measurements of an idle session.
pub(super) const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

impl Run {
    /// Watches an idle session, and returns when it has ended. Cancel-safe: dropped when there is a
    /// cell to send.
    pub async fn watch_idle(&mut self) -> SessionEnd {
        loop {
            match &self.state {
                RunState::Ended(_) => match self.session_end() {
                    Some(over) => return over,
                    None => self.wait_while_idle().await,
                },
                RunState::Dying(..) => self.wait_for_death().await,
                RunState::Running | RunState::Terminating(..) | RunState::Interrupted(..) => {
                    std::future::pending().await
                }
            }
        }
    }

    async fn wait_while_idle(&mut self) {
        match self.conversation.take_frame() {
            Ok(Some(frame)) => {
                if let Err(breach) = self.accept_idle(frame) {
                    self.stop_for(breach);
                }
                return;
            }
            Ok(None) => {}
            Err(_) => return self.end_for_bad_frame(),
        }
        tokio::select! {
            event = self.conversation.transfer(true) => match event {
                // A closed socket is noticed by reading, or by the guest's exit.
                SocketEvent::NotWritable { .. } => self.conversation.clear_output(),
                SocketEvent::Moved | SocketEvent::Flooded | SocketEvent::Closed => {
                    self.handle_socket(event);
                }
            },
            event = self.body.next_event() => match event {
                BodyEvent::Output(stream, text, _) | BodyEvent::LateOutput(stream, text) => {
                    self.store_late_output(stream, &text);
                }
                BodyEvent::CheckDue => self.check_idle_limits(),
                BodyEvent::Ended(status) => self.note_exit(status),
            },
        }
    }

    /// THREAT[RES-2]: background threads of an idle session have the same limits.
    fn check_idle_limits(&mut self) {
        let used = self.body.check(IDLE_CHECK_INTERVAL);
        self.conversation.usage.record(used);
        if self.conversation.usage.cpu_since_start(used) > self.conversation.limits.cpu {
            self.end(Outcome::Stopped(Limit::Cpu));
        }
    }

    /// Handles a frame that arrives while no cell runs. Asks are refused.
    fn accept_idle(&mut self, received: ReceivedFrame) -> Result<(), Breach> {
        self.conversation.spend_question(Breach::BadFrame)?;
        let frame = match received {
            ReceivedFrame::Frame(frame) | ReceivedFrame::Ask(frame, _) => frame,
            ReceivedFrame::Refused(id, error) => {
                self.conversation.refuse(id, error);
                return Ok(());
            }
        };
        match frame {
            FromGuest::Ask { id, .. } => {
                let message = "tools can only be called while a cell runs";
                self.conversation.refuse(id, CallError::new(CallCode::UpstreamError, message));
                Ok(())
            }
            FromGuest::Output { stream, text } => {
                self.store_late_output(stream, &text);
                Ok(())
            }
            FromGuest::Compiled
            | FromGuest::Progress(_)
            | FromGuest::Image(_)
            | FromGuest::CellEnded { .. } => Ok(()),
            FromGuest::Returned(_) | FromGuest::Threw(_) => Err(Breach::BadFrame),
        }
    }
}
