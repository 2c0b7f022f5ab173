use std::time::Duration;

use tokio::time::Instant;

use crate::process_tree::TreeUsage;

/// The resources that an execution used, as measured by the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub tool_calls: u32,
    pub cpu: Duration,
    pub peak_memory_bytes: u64,
}

/// Counts the usage of an execution, of a cell, or of the idle time after a cell.
#[derive(Default)]
pub(super) struct UsageCounter {
    pub(super) usage: Usage,
    /// CPU time that the guest had used when the count started.
    cpu_before: Duration,
    /// Memory that the guest held when the count started.
    pub(super) held_bytes: u64,
    started_at: Option<Instant>,
}

impl UsageCounter {
    /// Records a measurement of everything that the guest has used since it started.
    pub(super) fn record(&mut self, used: TreeUsage) {
        self.usage.cpu = self.usage.cpu.max(self.cpu_since_start(used));
        self.usage.peak_memory_bytes = self.usage.peak_memory_bytes.max(used.memory_bytes);
    }

    /// Returns the CPU time since the count started.
    pub(super) fn cpu_since_start(&self, used: TreeUsage) -> Duration {
        used.cpu.saturating_sub(self.cpu_before)
    }

    /// Records a measurement, and counts CPU time from here on.
    pub(super) fn restart(&mut self, used: TreeUsage, held_bytes: u64) {
        self.record(used);
        self.cpu_before = used.cpu;
        self.held_bytes = held_bytes;
        self.started_at = Some(Instant::now());
    }

    /// True if the count started less than this long ago.
    pub(super) fn is_fresh(&self, now: Instant, age: Duration) -> bool {
        self.started_at.is_some_and(|started_at| now <= started_at + age)
    }
}
