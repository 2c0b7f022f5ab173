//! Free space on the database's disk.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::checkpoint::wal_bytes;

/// With less free space no execution is begun, so that running ones can still be finished and
/// logged.
const MIN_FREE_BYTES: u64 = 8 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskSpace {
    pub(crate) free_bytes: u64,
    pub(crate) needed_bytes: u64,
}

impl DiskSpace {
    /// Measures the space that an unprivileged user can use. Returns `None` if `statvfs` fails.
    #[expect(clippy::useless_conversion, reason = "on some systems these are narrower")]
    pub(crate) fn measure(database: &Path) -> Option<DiskSpace> {
        let stat = statvfs(database.parent()?).ok()?;
        let free = u64::from(stat.blocks_available());
        // A checkpoint may copy the WAL to the database at any moment, which needs its length.
        let wal_bytes = wal_bytes(database.to_str().unwrap_or_default());
        Some(DiskSpace {
            free_bytes: free.saturating_mul(u64::from(stat.fragment_size())),
            needed_bytes: MIN_FREE_BYTES + wal_bytes,
        })
    }

    pub(crate) fn is_low(self) -> bool {
        self.free_bytes < self.needed_bytes
    }
}
