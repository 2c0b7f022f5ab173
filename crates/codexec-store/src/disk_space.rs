//! Room on the disk.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use crate::checkpoint::log_bytes;

/// With less than this nothing is begun, so that what runs can still be finished, and written to
/// the log files.
const MIN_FREE_BYTES: u64 = 8 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) free_bytes: u64,
    pub(crate) needed_bytes: u64,
}

impl Room {
    /// What a plain user may still write where this database is. `None` if the system does not
    /// say.
    #[expect(clippy::useless_conversion, reason = "on some systems these are narrower")]
    pub(crate) fn at(database: &Path) -> Option<Room> {
        let about = statvfs(database.parent()?).ok()?;
        let free = u64::from(about.blocks_available());
        // The database's log may be written back at any moment, and takes as much again.
        let log_bytes = log_bytes(database.to_str().unwrap_or_default());
        Some(Room {
            free_bytes: free.saturating_mul(u64::from(about.fragment_size())),
            needed_bytes: MIN_FREE_BYTES + log_bytes,
        })
    }

    pub(crate) fn is_short(self) -> bool {
        self.free_bytes < self.needed_bytes
    }
}
