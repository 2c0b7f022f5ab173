//! The end of a run: waits until the guest is dead, reads its last output, and decides the outcome.

use std::time::Duration;

use codexec_sandbox::Exit;
use codexec_types::{Event, FromGuest, Limit, Outcome};

use super::{Over, Run, State};
use crate::judge::{Claim, Evidence};
use crate::output::written;
use crate::slot::{Busy, together};
use crate::wire::Received;

/// Timeout for a killed worker to exit.
const DEATH: Duration = Duration::from_secs(10);
/// Timeout for reading the remaining output.
const REST: Duration = Duration::from_secs(1);

impl Run {
    /// Waits until nothing of the guest is left, then sets the outcome.
    pub(super) async fn see_death(&mut self) {
        self.handles.kill();
        let exit = match &mut self.busy {
            Some(busy) => tokio::time::timeout(DEATH, busy.gone()).await.ok().and_then(Result::ok),
            None => None,
        };
        self.hear_the_rest().await;
        let was_over = self.guarded.take().is_some_and(|guarded| guarded.was_over());
        let ran_out = self.busy.as_ref().is_some_and(Busy::ran_out_of_memory);
        self.count(exit, ran_out);
        let State::Dying(decided, status) = &mut self.state else { return };
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
            None if was_over => Outcome::Stopped(Limit::Memory),
            None if self.home.is_some() => evidence.of_program(claim),
            None => evidence.of_engine(claim),
        };
        if let Some(kept) = &mut self.kept {
            kept.over.get_or_insert(Over::because(&outcome));
        }
        self.state = State::Ended(outcome);
        // A slot whose worker was not reaped is not reused; dropping it kills the worker.
        if let (Some(busy), Some(_)) = (self.busy.take(), exit) {
            self.hold.give_back(busy);
        }
    }

    fn count(&mut self, exit: Option<Exit>, ran_out_of_memory: bool) {
        let entered = self.home.as_mut().and_then(|home| home.used.take());
        let exit = match (exit, entered) {
            (Some(exit), Some(entered)) => Some(together(exit, entered)),
            (exit, entered) => exit.or(entered),
        };
        let usage = &mut self.usage;
        if let Some(exit) = exit {
            let before = self.kept.as_ref().map_or(Duration::ZERO, |kept| kept.cpu_before);
            let cpu = Duration::from_micros(exit.cpu_us).saturating_sub(before);
            usage.cpu = usage.cpu.max(cpu);
            usage.peak_memory_bytes = usage.peak_memory_bytes.max(exit.peak_bytes);
        }
        let (Some(home), Some(busy)) = (&self.home, &self.busy) else { return };
        let peak = busy.base.group.as_ref().and_then(codexec_sandbox::Group::peak_memory_bytes);
        usage.peak_memory_bytes = peak.unwrap_or(usage.peak_memory_bytes);
        let met = [
            (Limit::Memory, ran_out_of_memory),
            (Limit::Processes, busy.ran_out_of_processes()),
            (Limit::Disk, self.user_dir.is_none() && codexec_sandbox::is_full(&home.workspace)),
        ];
        self.limits_met.extend(met.into_iter().filter(|(_, is_met)| *is_met).map(|(l, _)| l));
    }

    /// Reads what a dead program left in its pipes and its socket.
    async fn hear_the_rest(&mut self) {
        let Some(home) = &mut self.home else { return };
        let mut rest = Vec::new();
        let listening = async {
            while !(home.out.is_over() && home.err.is_over()) {
                rest.push(written(&mut home.out, &mut home.err).await);
            }
            while self.inbox.fill().await.unwrap_or(false) {}
        };
        // All write ends should be closed; the timeout covers the case that one is not.
        let _ = tokio::time::timeout(REST, listening).await;
        for (stream, text, bytes) in rest {
            self.output_bytes_left = self.output_bytes_left.saturating_sub(bytes);
            if !text.is_empty() && self.output_bytes_left > 0 {
                self.leftovers.push_back(Event::Output { stream, text });
            }
        }
        while let Ok(Some(received)) = self.inbox.take_arrived().await {
            let Received::Frame(frame) = received else { continue };
            match frame {
                FromGuest::Returned(value) => self.claim = Some(Claim::Returned(value)),
                FromGuest::Threw(thrown) => self.claim = Some(Claim::Threw(thrown)),
                FromGuest::Image(image) => self.leftovers.push_back(Event::Image(image)),
                FromGuest::Output { .. }
                | FromGuest::Compiled
                | FromGuest::CellEnded { .. }
                | FromGuest::Progress(_)
                | FromGuest::Ask { .. } => {}
            }
        }
    }
}
