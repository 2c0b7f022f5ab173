//! The memory of one group, as the kernel counts it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use super::place::Kind;

/// Reads how much memory a group holds. The file stays open: it is read many times a second while
/// a guest is near its limit. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MemoryGauge {
    stat: Arc<File>,
    kind: Kind,
}

/// Longer than what the kernel writes into `memory.stat`.
const STAT_BYTES: usize = 8192;

impl MemoryGauge {
    pub(super) fn open(stat: &Path, kind: Kind) -> io::Result<MemoryGauge> {
        Ok(MemoryGauge { stat: Arc::new(File::open(stat)?), kind })
    }

    /// Returns the memory of the group's processes and everything in memory file systems; the page
    /// cache of other files is not included, because the kernel takes it back by itself.
    pub fn held_bytes(&self) -> u64 {
        let mut room = [0; STAT_BYTES];
        let read = self.stat.read_at(&mut room, 0).unwrap_or_default();
        let text = std::str::from_utf8(room.get(..read).unwrap_or_default());
        held_bytes(text.unwrap_or_default(), self.kind)
    }
}

/// v1 does not tell which part of the kernel's own memory can be taken back, so none of it counts
/// there, and the limit of the whole group bounds it.
fn held_bytes(stat: &str, kind: Kind) -> u64 {
    let value = |name: &str| -> u64 {
        let lines = stat.lines().filter_map(|line| line.split_once(' '));
        let found = lines.filter(|(key, _)| *key == name).find_map(|(_, value)| value.parse().ok());
        found.unwrap_or(0)
    };
    match kind {
        Kind::V2 => {
            let kernel = value("kernel").saturating_sub(value("slab_reclaimable"));
            value("anon") + value("shmem") + kernel
        }
        Kind::V1 => value("rss") + value("shmem"),
    }
}

#[cfg(test)]
mod tests;
