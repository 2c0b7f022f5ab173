//! The end of a run: waits until the guest is dead, reads its last output, and decides the outcome.

use std::time::Duration;

use codexec_sandbox::WorkerExit;
use codexec_types::{FromGuest, Limit, Outcome, RunEvent};

use super::{Run, RunState, SessionEnd};
use crate::evidence::{Claim, Evidence};
use crate::frames::ReceivedFrame;
use crate::output::read_either;
use crate::slot::{BusySlot, combine_usage};

/// Timeout for a killed worker to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for reading the remaining output.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

impl Run {
    /// Waits until nothing of the guest is left, then sets the outcome.
    pub(super) async fn wait_for_death(&mut self) {
        self.handles.kill();
        let exit = match &mut self.busy {
            Some(busy) => tokio::time::timeout(EXIT_TIMEOUT, busy.wait_for_exit())
                .await
                .ok()
                .and_then(Result::ok),
            None => None,
        };
        self.read_remaining_output().await;
        let was_killed =
            self.memory_guard.take().is_some_and(|memory_guard| memory_guard.was_killed());
        let ran_out = self.busy.as_ref().is_some_and(BusySlot::has_run_out_of_memory);
        self.record_usage(exit, ran_out);
        let RunState::Dying(decided, status) = &mut self.state else { return };
        let (decided, status) = (decided.take(), status.take());
        let evidence = Evidence {
            language: self.language,
            is_compiled: self.is_compiled,
            exit,
            status,
            ran_out_of_memory: ran_out,
            peak_bytes: self.usage.peak_memory_bytes,
            memory_bytes: self.limits.memory_bytes,
        };
        let claim = self.claim.take();
        let outcome = match decided {
            Some(outcome) => outcome,
            None if was_killed => Outcome::Stopped(Limit::Memory),
            None if self.program.is_some() => evidence.judge_program(claim),
            None => evidence.judge_engine(claim),
        };
        if let Some(session) = &mut self.session {
            session.end.get_or_insert(SessionEnd::from_outcome(&outcome));
        }
        self.state = RunState::Ended(outcome);
        // A slot whose worker was not reaped is not reused; dropping it kills the worker.
        if let (Some(busy), Some(_)) = (self.busy.take(), exit) {
            self.lease.give_back(busy);
        }
    }

    fn record_usage(&mut self, exit: Option<WorkerExit>, ran_out_of_memory: bool) {
        let entered = self.program.as_mut().and_then(|program| program.used.take());
        let exit = match (exit, entered) {
            (Some(exit), Some(entered)) => Some(combine_usage(exit, entered)),
            (exit, entered) => exit.or(entered),
        };
        let usage = &mut self.usage;
        if let Some(exit) = exit {
            let before = self.session.as_ref().map_or(Duration::ZERO, |session| session.cpu_before);
            let cpu = Duration::from_micros(exit.cpu_us).saturating_sub(before);
            usage.cpu = usage.cpu.max(cpu);
            usage.peak_memory_bytes = usage.peak_memory_bytes.max(exit.peak_bytes);
        }
        let (Some(program), Some(busy)) = (&self.program, &self.busy) else { return };
        let peak =
            busy.base.group.as_ref().and_then(codexec_sandbox::SlotCgroup::peak_memory_bytes);
        usage.peak_memory_bytes = peak.unwrap_or(usage.peak_memory_bytes);
        let met = [
            (Limit::Memory, ran_out_of_memory),
            (Limit::Processes, busy.has_run_out_of_processes()),
            (
                Limit::Disk,
                self.user_dir.is_none() && codexec_sandbox::is_filesystem_full(&program.workspace),
            ),
        ];
        self.limits_met.extend(met.into_iter().filter(|(_, is_met)| *is_met).map(|(l, _)| l));
    }

    /// Reads what a dead program left in its pipes and its socket.
    async fn read_remaining_output(&mut self) {
        let Some(program) = &mut self.program else { return };
        let mut rest = Vec::new();
        let listening = async {
            while !(program.out.has_ended() && program.err.has_ended()) {
                rest.push(read_either(&mut program.out, &mut program.err).await);
            }
            while self.inbox.fill().await.unwrap_or(false) {}
        };
        // All write ends should be closed; the timeout covers the case that one is not.
        let _ = tokio::time::timeout(OUTPUT_TIMEOUT, listening).await;
        for (stream, text, bytes) in rest {
            self.output_bytes_left = self.output_bytes_left.saturating_sub(bytes);
            if !text.is_empty() && self.output_bytes_left > 0 {
                self.leftovers.push_back(RunEvent::Output { stream, text });
            }
        }
        while let Ok(Some(received)) = self.inbox.take_arrived().await {
            let ReceivedFrame::Frame(frame) = received else { continue };
            match frame {
                FromGuest::Returned(value) => self.claim = Some(Claim::Returned(value)),
                FromGuest::Threw(thrown) => self.claim = Some(Claim::Threw(thrown)),
                FromGuest::Image(image) => self.leftovers.push_back(RunEvent::Image(image)),
                FromGuest::Output { .. }
                | FromGuest::Compiled
                | FromGuest::CellEnded { .. }
                | FromGuest::Progress(_)
                | FromGuest::Ask { .. } => {}
            }
        }
    }
}
