//! The usage of programs: of the whole process tree, because the kernel does not report the usage
//! of a killed tree.

use std::time::Duration;

use codexec_sandbox::SlotCgroup;
use codexec_types::Limit;
use tokio::time::Instant;

use super::{ProgramsBody, TreeWatch};
use crate::process_tree::TreeUsage;
use crate::run::body::FinalUsage;
use crate::slot::combine_usage;

impl ProgramsBody {
    pub(in crate::run::body) fn check(&mut self, next: Duration) -> TreeUsage {
        self.next_check = Instant::now() + next;
        self.cell_processes.kill_overdue();
        self.measure()
    }

    pub(in crate::run::body) fn measure(&mut self) -> TreeUsage {
        if !self.worker.is_occupied() {
            return TreeUsage::default();
        }
        let roots = &self.worker.roots;
        let tree = self.tree.get_or_insert_with(|| TreeWatch::new(roots.clone()));
        tree.measure(&self.program.meter)
    }

    pub(in crate::run::body) fn measure_session(&mut self) -> (TreeUsage, u64) {
        if let Some(used) = self.tree.as_ref().and_then(TreeWatch::measure_if_settled) {
            return (used, used.memory_bytes);
        }
        let own_bytes = self.stats.measure().memory_bytes;
        let used = self.measure();
        // Unlike the meter, this includes what every guest of the language holds from the start.
        (used, used.memory_bytes.max(own_bytes))
    }

    pub(in crate::run::body) fn begin_idle(&mut self, check_in: Duration) {
        self.next_check = Instant::now() + check_in;
        if let Some(guard) = &self.guard {
            guard.set_idle();
        }
    }

    pub(in crate::run::body) fn final_usage(&mut self) -> FinalUsage {
        let exit = match (self.worker.exit(), self.program.used.take()) {
            (Some(exit), Some(entered)) => Some(combine_usage(exit, entered)),
            (exit, entered) => exit.or(entered),
        };
        let used = exit.map_or_else(TreeUsage::default, |exit| TreeUsage {
            cpu: Duration::from_micros(exit.cpu_us),
            memory_bytes: exit.peak_bytes,
        });
        let group = self.worker.busy.as_ref().and_then(|busy| busy.base.group.as_ref());
        FinalUsage { used, peak_bytes: group.and_then(SlotCgroup::peak_memory_bytes) }
    }

    pub(in crate::run::body) fn reached_limits(&self) -> Vec<Limit> {
        let Some(busy) = &self.worker.busy else { return Vec::new() };
        self.list_limits(busy.has_run_out_of_memory(), busy.has_run_out_of_processes())
    }

    pub(in crate::run::body) fn take_reached_limits(&mut self) -> Vec<Limit> {
        let Some(busy) = &mut self.worker.busy else { return Vec::new() };
        let (memory, processes) = busy.take_exhausted();
        self.list_limits(memory, processes)
    }

    fn list_limits(&self, memory: bool, processes: bool) -> Vec<Limit> {
        let disk =
            self.user_dir.is_none() && codexec_sandbox::is_filesystem_full(&self.program.workspace);
        let met = [(Limit::Memory, memory), (Limit::Processes, processes), (Limit::Disk, disk)];
        met.into_iter().filter(|(_, is_met)| *is_met).map(|(limit, _)| limit).collect()
    }
}
