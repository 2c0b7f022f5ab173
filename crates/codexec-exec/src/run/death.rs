//! The end of a run: seeing that nothing of the guest lives, hearing what it said last, and
//! deciding what it came to.

use std::time::Duration;

use codexec_sandbox::Exit;
use codexec_types::{Event, FromGuest, Limit, Outcome};

use super::{Over, Run, State};
use crate::judge::{Claim, Evidence};
use crate::output::written;
use crate::slot::{Busy, together};
use crate::wire::Received;

/// How long a killed worker may take to be gone.
const DEATH: Duration = Duration::from_secs(10);
/// How long the rest of what it said may take to be read.
const REST: Duration = Duration::from_secs(1);

impl Run {
    /// The answer goes out only when nothing of the guest is left.
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
        // Without a death certificate the slot is not used again; dropping it kills.
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

    /// What a dead program has said and nobody has heard yet: no more than pipes and sockets
    /// hold.
    async fn hear_the_rest(&mut self) {
        let Some(home) = &mut self.home else { return };
        let mut rest = Vec::new();
        let listening = async {
            while !(home.out.is_over() && home.err.is_over()) {
                rest.push(written(&mut home.out, &mut home.err).await);
            }
            while self.inbox.fill().await.unwrap_or(false) {}
        };
        // All of its ends are closed; this is for the case that one is not.
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
