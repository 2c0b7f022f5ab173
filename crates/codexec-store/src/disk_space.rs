//! Free space on the disk of the store's folder.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// With less free space no execution is begun, so that running ones can still be finished and
/// logged.
const MIN_FREE_BYTES: u64 = 8 << 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskSpace {
    pub(crate) free_bytes: u64,
    pub(crate) needed_bytes: u64,
}

impl DiskSpace {
    /// Measures the space that an unprivileged user can use on the disk of `folder`, of which the
    /// store may need `reserve_bytes` at any moment. Returns `None` if `statvfs` fails.
    #[expect(clippy::useless_conversion, reason = "on some systems these are narrower")]
    pub(crate) fn measure(folder: &Path, reserve_bytes: u64) -> Option<DiskSpace> {
        let stat = statvfs(folder).ok()?;
        let free = u64::from(stat.blocks_available());
        Some(DiskSpace {
            free_bytes: free.saturating_mul(u64::from(stat.fragment_size())),
            needed_bytes: MIN_FREE_BYTES + reserve_bytes,
        })
    }

    pub(crate) fn is_low(self) -> bool {
        self.free_bytes < self.needed_bytes
    }
}
