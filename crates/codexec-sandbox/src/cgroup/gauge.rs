//! The memory use of one cgroup, as the kernel counts it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use super::hierarchy::CgroupVersion;

/// A reader of a cgroup's memory use. Its files stay open, because they are read many times a
/// second while a guest is near its limit. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MemoryGauge {
    stat: Arc<File>,
    usage: Arc<File>,
    version: CgroupVersion,
}

/// More than the length of `memory.stat`.
const STAT_BYTES: usize = 8192;

impl MemoryGauge {
    /// Opens the files of a cgroup. `group` is its directory in the memory hierarchy.
    pub(super) fn open(group: &Path, version: CgroupVersion) -> io::Result<MemoryGauge> {
        let usage = match version {
            CgroupVersion::V2 => "memory.current",
            CgroupVersion::V1 => "memory.usage_in_bytes",
        };
        let open = |name: &str| File::open(group.join(name)).map(Arc::new);
        Ok(MemoryGauge { stat: open("memory.stat")?, usage: open(usage)?, version })
    }

    /// Returns an upper bound of [`MemoryGauge::read_used_bytes`], in a twentieth of the time.
    pub fn read_upper_bound(&self) -> Option<u64> {
        let mut buffer = [0; 32];
        let read = self.usage.read_at(&mut buffer, 0).ok()?;
        std::str::from_utf8(buffer.get(..read)?).ok()?.trim().parse().ok()
    }

    /// Returns the memory of the cgroup's processes and of its tmpfs files. The page cache of other
    /// files is left out, because the kernel reclaims it.
    pub fn read_used_bytes(&self) -> u64 {
        let mut buffer = [0; STAT_BYTES];
        let read = self.stat.read_at(&mut buffer, 0).unwrap_or_default();
        let text = std::str::from_utf8(buffer.get(..read).unwrap_or_default());
        held_bytes(text.unwrap_or_default(), self.version)
    }
}

/// Sums the fields of `memory.stat`. v1 does not report which kernel memory is reclaimable, so none
/// of it counts there; the cgroup's own limit bounds it.
fn held_bytes(stat: &str, version: CgroupVersion) -> u64 {
    let value = |name: &str| -> u64 {
        let lines = stat.lines().filter_map(|line| line.split_once(' '));
        let mut values = lines.filter(|(key, _)| *key == name);
        values.find_map(|(_, value)| value.parse().ok()).unwrap_or(0)
    };
    match version {
        CgroupVersion::V2 => {
            let kernel = value("kernel").saturating_sub(value("slab_reclaimable"));
            value("anon") + value("shmem") + kernel
        }
        CgroupVersion::V1 => value("rss") + value("shmem"),
    }
}

#[cfg(test)]
mod tests;
