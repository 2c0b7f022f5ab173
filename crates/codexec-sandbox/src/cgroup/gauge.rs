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
    usage: Arc<File>,
    kind: Kind,
}

/// Longer than what the kernel writes into `memory.stat`.
const STAT_BYTES: usize = 8192;

impl MemoryGauge {
    /// `group` is the group's directory in the hierarchy that counts memory.
    pub(super) fn open(group: &Path, kind: Kind) -> io::Result<MemoryGauge> {
        let usage = match kind {
            Kind::V2 => "memory.current",
            Kind::V1 => "memory.usage_in_bytes",
        };
        let open = |name: &str| File::open(group.join(name)).map(Arc::new);
        Ok(MemoryGauge { stat: open("memory.stat")?, usage: open(usage)?, kind })
    }

    /// Returns a number that [`MemoryGauge::held_bytes`] does not exceed; to read it takes a
    /// twentieth of the time.
    pub fn at_most_bytes(&self) -> Option<u64> {
        let mut room = [0; 32];
        let read = self.usage.read_at(&mut room, 0).ok()?;
        std::str::from_utf8(room.get(..read)?).ok()?.trim().parse().ok()
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
