use std::time::Duration;

use codexec_types::{Language, Outcome, Thrown, WorkerJob};

use super::{FinalUsage, Observed, PooledWorker};
use crate::evidence::{Claim, Evidence};
use crate::process_tree::{ProcessStats, TreeUsage};

/// A guest of the built-in engine: one process, whose only output is frames.
pub(in crate::run) struct EngineBody {
    pub(super) worker: PooledWorker,
    language: Language,
    /// The code was parsed. Before that, only our own parser has run.
    is_compiled: bool,
    /// The usage of a session's worker; empty for a single execution.
    pub(super) stats: ProcessStats,
}

impl EngineBody {
    pub(super) fn new(worker: PooledWorker, job: &WorkerJob) -> EngineBody {
        let stats = match job.is_session {
            true => ProcessStats::new(&worker.roots),
            false => ProcessStats::default(),
        };
        EngineBody { worker, language: job.language, is_compiled: false, stats }
    }

    pub(super) fn note_compiled(&mut self) {
        self.is_compiled = true;
    }

    pub(super) fn begin_cell(&mut self) {
        self.is_compiled = false;
    }

    pub(super) fn measure_session(&self) -> (TreeUsage, u64) {
        let used = self.stats.measure();
        (used, used.memory_bytes)
    }

    pub(super) fn final_usage(&self) -> FinalUsage {
        let Some(exit) = self.worker.exit() else { return FinalUsage::default() };
        let cpu = Duration::from_micros(exit.cpu_us);
        let used = TreeUsage { cpu, memory_bytes: exit.peak_bytes };
        FinalUsage { used, peak_bytes: None }
    }

    pub(super) fn judge_end(&self, claim: Option<Claim>, observed: &Observed) -> Outcome {
        let ran_out_of_memory = self.worker.has_run_out_of_memory();
        Evidence { ran_out_of_memory, ..self.evidence(observed) }.judge_engine(claim)
    }

    pub(super) fn judge_thrown(&self, thrown: Thrown, observed: &Observed) -> Outcome {
        let peak_bytes = self.stats.measure().memory_bytes;
        Evidence { peak_bytes, ..self.evidence(observed) }.judge_cell(thrown)
    }

    fn evidence(&self, observed: &Observed) -> Evidence {
        Evidence {
            language: self.language,
            is_compiled: self.is_compiled,
            exit: self.worker.exit(),
            status: None,
            ran_out_of_memory: false,
            peak_bytes: observed.peak_bytes,
            memory_bytes: observed.memory_bytes,
        }
    }
}
