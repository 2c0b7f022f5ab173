//! Handles the frames that a guest sends while it runs.

use codexec_types::{FromGuest, RunEvent};

use super::body::{EndSign, OutputPath};
use super::conversation::Breach;
use super::{Run, RunState};
use crate::evidence::Claim;
use crate::frames::ReceivedFrame;

impl Run {
    /// Handles a frame, using only the host's own counters.
    pub(super) fn accept(&mut self, received: ReceivedFrame) -> Result<Option<RunEvent>, Breach> {
        let frame = match received {
            ReceivedFrame::Ask(FromGuest::Ask { id, ask }, weight) => {
                let is_dropped = self.drops_asks();
                return self.conversation.accept_ask((id, ask, weight), is_dropped);
            }
            ReceivedFrame::Refused(id, error) => {
                return self.conversation.accept_refused(id, error).map(|()| None);
            }
            ReceivedFrame::Frame(frame) | ReceivedFrame::Ask(frame, _) => frame,
        };
        match (frame, &mut self.session) {
            (FromGuest::Compiled, _) => self.body.note_compiled(),
            (FromGuest::Output { stream, text }, session) => {
                match (session, self.body.output_path()) {
                    // THREAT[SES-10]: output in a frame is what the guest attributes to an earlier
                    // cell.
                    (Some(session), OutputPath::Pipes) => session.store_late_output(stream, &text),
                    (Some(_), OutputPath::Frames) | (None, _) => {
                        let bytes = text.len() as u64;
                        return self.conversation.accept_output(stream, text, bytes);
                    }
                }
            }
            (FromGuest::Progress(text), _) => return self.conversation.accept_progress(text),
            (FromGuest::Image(image), _) => return self.conversation.accept_image(image),
            // Handled with its weight above.
            (FromGuest::Ask { .. }, _) => {}
            // Sessions end their cells with `CellEnded`; other guests end with `Returned` or
            // `Threw`.
            (FromGuest::CellEnded { key, ending }, Some(_)) => {
                self.accept_end_of_cell(&key, ending)?;
            }
            (FromGuest::CellEnded { .. }, None)
            | (FromGuest::Returned(_) | FromGuest::Threw(_), Some(_)) => {
                return Err(Breach::BadFrame);
            }
            (FromGuest::Returned(value), None) => self.accept_claim(Claim::Returned(value)),
            (FromGuest::Threw(thrown), None) => self.accept_claim(Claim::Threw(thrown)),
        }
        Ok(None)
    }

    /// Records how the guest says it ended.
    fn accept_claim(&mut self, claim: Claim) {
        self.conversation.claim = Some(claim);
        match self.body.end_sign() {
            EndSign::Frames => {
                self.body.kill();
                self.state = RunState::Dying(None, None);
            }
            // The guest has yet to exit.
            EndSign::Exit => {}
        }
    }

    pub(super) fn drops_asks(&self) -> bool {
        matches!(self.state, RunState::Interrupted(..))
    }

    /// Stops the guest if it has done something that it may not.
    pub(super) fn handle(
        &mut self,
        accepted: Result<Option<RunEvent>, Breach>,
    ) -> Option<RunEvent> {
        accepted.unwrap_or_else(|breach| {
            self.stop_for(breach);
            None
        })
    }
}
