//! How much memory a guest holds, and the end of a guest that holds more than it may.
//!
//! A guest's files lie in memory, too, but they are its disk, which has a limit of its own. The
//! kernel has one number for both, so the host takes the disk off again.

mod guard;
mod processes;

use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use codexec_sandbox::{MemoryGauge, used_bytes};

pub(crate) use guard::{Guard, Guarded};

/// How often in a row processes must be counted over the limit before their guest is stopped.
const CONFIRMATIONS: usize = 3;

/// Measures the memory of one guest: all its processes together, without its disk, and without
/// what every guest of its language has from the start.
pub(crate) struct Meter {
    counted: Counted,
    /// The file systems in memory that hold the guest's files.
    disks: Mutex<Vec<OwnedFd>>,
    at_start_bytes: u64,
}

/// Who counts.
enum Counted {
    /// The kernel, for the whole tree.
    ByGroup(MemoryGauge),
    /// We do, process by process, from these down.
    ByProcess(Vec<i32>),
}

impl Meter {
    pub(crate) fn new(gauge: Option<MemoryGauge>, roots: Vec<i32>, disk: OwnedFd) -> Meter {
        let counted = gauge.map_or(Counted::ByProcess(roots), Counted::ByGroup);
        Meter { counted, disks: Mutex::new(vec![disk]), at_start_bytes: 0 }
    }

    /// The guest has one more file system.
    pub(crate) fn add_disk(&self, disk: OwnedFd) {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner).push(disk);
    }

    fn disk_bytes(&self) -> u64 {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner).iter().map(used_bytes).sum()
    }

    /// Leaves out what the guest held before it was given any code.
    pub(crate) fn start_at(&mut self, at_start_bytes: u64) {
        self.at_start_bytes = at_start_bytes;
    }

    /// Returns what the guest holds. Where we count by process, memory that processes have in
    /// common is counted for each of them; [`Meter::is_over`] is exact.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.without_disk(|disk_bytes| match &self.counted {
            Counted::ByGroup(gauge) => gauge.held_bytes().saturating_sub(disk_bytes),
            Counted::ByProcess(roots) => processes::held_bytes(roots, disk_bytes),
        })
        .saturating_sub(self.at_start_bytes)
    }

    /// Returns what the guest holds, or more if that can be read faster and is within the limit.
    pub(super) fn at_most_bytes(&self, limit_bytes: u64) -> u64 {
        if let Counted::ByGroup(gauge) = &self.counted {
            let most = gauge.at_most_bytes().map(|most| most.saturating_sub(self.at_start_bytes));
            if let Some(most) = most.filter(|most| *most <= limit_bytes) {
                return most;
            }
        }
        self.held_bytes()
    }

    /// Returns true if the guest really holds more than this, after [`Meter::held_bytes`] said so.
    pub(super) fn is_over(&self, limit_bytes: u64) -> bool {
        match &self.counted {
            Counted::ByGroup(_) => self.held_bytes() > limit_bytes,
            // Processes come and go while they are counted, so one of them may be counted twice.
            Counted::ByProcess(roots) => {
                (0..CONFIRMATIONS).all(|_| self.held_by_processes(roots) > limit_bytes)
            }
        }
    }

    fn held_by_processes(&self, roots: &[i32]) -> u64 {
        self.without_disk(|disk_bytes| {
            match processes::held_bytes_if_alone(roots, disk_bytes) {
                Some(alone) => alone.saturating_sub(self.at_start_bytes),
                // What the zygote has in common with all guests is divided among them.
                None => processes::held_bytes_exactly(roots, disk_bytes),
            }
        })
    }

    pub(super) fn has_group(&self) -> bool {
        matches!(self.counted, Counted::ByGroup(_))
    }

    /// Files may come and go while memory is counted: the guest gets the benefit of the doubt.
    fn without_disk(&self, count: impl Fn(u64) -> u64) -> u64 {
        let before = self.disk_bytes();
        let held = count(before);
        let after = self.disk_bytes();
        if after <= before { held } else { count(after).min(held) }
    }
}
