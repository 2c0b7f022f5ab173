//! Room on the disk.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// With less than this nothing is begun, so that what runs can still be finished.
pub(crate) const MIN_FREE_BYTES: u64 = 4 << 20;

/// What a plain user may still write where this file is. `None` if the system does not say.
#[expect(clippy::useless_conversion, reason = "on some systems these are narrower")]
pub(crate) fn free_bytes(file: &Path) -> Option<u64> {
    let about = statvfs(file.parent()?).ok()?;
    Some(u64::from(about.blocks_available()).saturating_mul(u64::from(about.fragment_size())))
}
