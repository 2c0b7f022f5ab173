//! Measures the memory of guests, and kills guests that hold too much.
//!
//! A guest's files are in memory, too, but they count against its disk limit. The kernel reports
//! one number for both, so the host subtracts the disk usage.

mod guard;
mod processes;

use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use codexec_sandbox::{MemoryGauge, used_bytes};

pub(crate) use guard::{GuardHandle, MemoryGuard};

/// Number of successive counts over the limit before a guest is killed, when counting by process.
const CONFIRMATIONS: usize = 3;

/// Measures the memory of one guest: all its processes together, without its files, and without
/// what every guest of its language holds from the start.
pub(crate) struct MemoryMeter {
    source: MemorySource,
    /// The tmpfs mounts that hold the guest's files.
    disks: Mutex<Vec<OwnedFd>>,
    baseline_bytes: u64,
}

/// The source of the measurement.
enum MemorySource {
    /// The kernel counts the whole cgroup.
    ByGroup(MemoryGauge),
    /// The host adds up the process trees below these process ids.
    ByProcess(Vec<i32>),
}

impl MemoryMeter {
    pub(crate) fn new(gauge: Option<MemoryGauge>, roots: Vec<i32>, disk: OwnedFd) -> MemoryMeter {
        let source = gauge.map_or(MemorySource::ByProcess(roots), MemorySource::ByGroup);
        MemoryMeter { source, disks: Mutex::new(vec![disk]), baseline_bytes: 0 }
    }

    /// Adds a file system to the guest's disk usage.
    pub(crate) fn add_disk(&self, disk: OwnedFd) {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner).push(disk);
    }

    fn disk_bytes(&self) -> u64 {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner).iter().map(used_bytes).sum()
    }

    /// Sets the memory that the guest held before it got any code, which is not counted.
    pub(crate) fn set_baseline(&mut self, baseline_bytes: u64) {
        self.baseline_bytes = baseline_bytes;
    }

    /// Returns the memory that the guest holds. When counting by process, shared memory is counted
    /// once for each process; [`MemoryMeter::exceeds`] is exact.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.measure_without_disk(|disk_bytes| match &self.source {
            MemorySource::ByGroup(gauge) => gauge.read_used_bytes().saturating_sub(disk_bytes),
            MemorySource::ByProcess(roots) => processes::held_bytes(roots, disk_bytes),
        })
        .saturating_sub(self.baseline_bytes)
    }

    /// Returns the memory that the guest holds, or an upper bound if that is cheaper and within the
    /// limit.
    pub(super) fn at_most_bytes(&self, limit_bytes: u64) -> u64 {
        if let MemorySource::ByGroup(gauge) = &self.source {
            let most =
                gauge.read_upper_bound().map(|most| most.saturating_sub(self.baseline_bytes));
            if let Some(most) = most.filter(|most| *most <= limit_bytes) {
                return most;
            }
        }
        self.held_bytes()
    }

    /// True if the guest holds more than this. Called to confirm [`MemoryMeter::held_bytes`].
    pub(super) fn exceeds(&self, limit_bytes: u64) -> bool {
        match &self.source {
            MemorySource::ByGroup(_) => self.held_bytes() > limit_bytes,
            // Processes start and exit while they are counted, so one may be counted twice.
            MemorySource::ByProcess(roots) => {
                (0..CONFIRMATIONS).all(|_| self.held_by_processes(roots) > limit_bytes)
            }
        }
    }

    fn held_by_processes(&self, roots: &[i32]) -> u64 {
        self.measure_without_disk(|disk_bytes| {
            match processes::held_bytes_if_alone(roots, disk_bytes) {
                Some(alone) => alone.saturating_sub(self.baseline_bytes),
                // The pages that all guests share with the zygote are divided among them.
                None => processes::held_bytes_exactly(roots, disk_bytes),
            }
        })
    }

    pub(super) fn has_group(&self) -> bool {
        matches!(self.source, MemorySource::ByGroup(_))
    }

    /// Files may come and go during the measurement, so the lower result is used.
    fn measure_without_disk(&self, count: impl Fn(u64) -> u64) -> u64 {
        let before = self.disk_bytes();
        let held = count(before);
        let after = self.disk_bytes();
        if after <= before { held } else { count(after).min(held) }
    }
}
