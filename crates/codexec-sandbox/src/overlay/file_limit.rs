//! The limit on the number of files in a worker's layers. A guest may use it up, so the limit is
//! raised by the files that are there before and after the next layer is made.

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::statvfs::statvfs;

use super::{LAYERS, NO_RIGHTS};
use crate::LayerLimits;

/// Allows as many files as are there, and as many again as a layer may have. The kernel frees the
/// files of a deleted layer some time later, and they must not count against the next one.
///
/// THREAT[FIL-8]: a guest that keeps files of its old layers in use gets at most twice its limit.
pub(super) fn allow_one_more_layer(limits: LayerLimits) -> Result<(), Errno> {
    let most = limits.max_files.saturating_mul(2);
    set(used()?.saturating_add(limits.max_files).min(most))
}

fn used() -> Result<u64, Errno> {
    let stat = statvfs(LAYERS)?;
    Ok(stat.files().saturating_sub(stat.files_free()))
}

fn set(max_files: u64) -> Result<(), Errno> {
    let nothing = None::<&str>;
    let options = format!("nr_inodes={max_files}");
    let flags = MsFlags::MS_REMOUNT.union(NO_RIGHTS);
    mount(nothing, LAYERS, nothing, flags, Some(options.as_str()))
}
