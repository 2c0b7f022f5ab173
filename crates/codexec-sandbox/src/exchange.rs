use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};

/// Swaps two directories of one file system: atomically, or by three renames where the file system
/// does not support that.
pub fn swap_directories(a: &Path, b: &Path) -> io::Result<()> {
    match renameat2(AT_FDCWD, a, AT_FDCWD, b, RenameFlags::RENAME_EXCHANGE) {
        Err(Errno::EINVAL | Errno::ENOSYS) => {
            let aside = a.with_extension("aside");
            std::fs::rename(b, &aside)?;
            std::fs::rename(a, b)?;
            std::fs::rename(aside, a)
        }
        other => Ok(other?),
    }
}
