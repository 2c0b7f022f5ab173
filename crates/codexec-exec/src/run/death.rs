//! The end of a run: waits until the guest is dead, reads its last output, and decides the outcome.

use std::time::Duration;

use codexec_types::{FromGuest, RunEvent};

use super::body::{EndSign, FinalUsage, Observed};
use super::{Run, RunState, SessionEnd};
use crate::evidence::Claim;
use crate::frames::ReceivedFrame;

/// Timeout for reading the remaining output.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

impl Run {
    /// Waits until nothing of the guest is left, then sets the outcome. Cancel-safe.
    pub(super) async fn wait_for_death(&mut self) {
        self.body.wait_for_exit().await;
        self.read_remaining_output().await;
        let RunState::Dying(decided, status) = &mut self.state else { return };
        let (decided, status) = (decided.take(), status.take());
        let FinalUsage { used, peak_bytes } = self.body.final_usage();
        let usage = &mut self.conversation.usage;
        usage.record(used);
        usage.usage.peak_memory_bytes = peak_bytes.unwrap_or(usage.usage.peak_memory_bytes);
        self.conversation.limits_met.extend(self.body.reached_limits());
        let claim = self.conversation.claim.take();
        let outcome =
            decided.unwrap_or_else(|| self.body.judge_end(claim, status, &self.observed()));
        if let Some(session) = &mut self.session {
            session.note_end(SessionEnd::from_outcome(&outcome));
        }
        self.state = RunState::Ended(outcome);
        self.body.vacate();
    }

    pub(super) fn observed(&self) -> Observed {
        Observed {
            peak_bytes: self.conversation.usage.usage.peak_memory_bytes,
            memory_bytes: self.conversation.limits.memory_bytes,
        }
    }

    /// Reads what a dead program left in its pipes and its socket.
    async fn read_remaining_output(&mut self) {
        match self.body.end_sign() {
            EndSign::Frames => return,
            EndSign::Exit => {}
        }
        let Run { conversation, body, .. } = self;
        let reading = async {
            while let Some((stream, text, bytes)) = body.read_last_output().await {
                conversation.accept_last_output(stream, text, bytes);
            }
            conversation.read_to_end().await;
        };
        // All write ends should be closed; the timeout covers the case that one is not.
        let _ = tokio::time::timeout(OUTPUT_TIMEOUT, reading).await;
        while let Some(received) = conversation.take_last_frame().await {
            let ReceivedFrame::Frame(frame) = received else { continue };
            match frame {
                FromGuest::Returned(value) => conversation.claim = Some(Claim::Returned(value)),
                FromGuest::Threw(thrown) => conversation.claim = Some(Claim::Threw(thrown)),
                FromGuest::Image(image) => conversation.events.push_back(RunEvent::Image(image)),
                FromGuest::Output { .. }
                | FromGuest::Compiled
                | FromGuest::CellEnded { .. }
                | FromGuest::Progress(_)
                | FromGuest::Ask { .. } => {}
            }
        }
    }
}
