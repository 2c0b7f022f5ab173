use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
};

use crate::private_files;

/// A lock on a file among all codexec processes, by `flock`. Released on drop.
///
/// The lock belongs to the open file. A child process that has not called exec yet holds it, too,
/// so a lock that must end with its process is a [`ProcessLock`](crate::ProcessLock).
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Waits for the lock. Blocks the thread without a timeout, so only for locks that are held
    /// briefly. Creates the file and its folder if missing.
    #[expect(clippy::disallowed_methods, reason = "the one place that locks files")]
    pub fn acquire(path: &Path) -> io::Result<FileLock> {
        let file = open(path)?;
        file.lock()?;
        Ok(FileLock { _file: file })
    }

    /// Takes the lock; `None` if somebody else holds it. Creates the file and its folder if
    /// missing.
    #[expect(clippy::disallowed_methods, reason = "the one place that locks files")]
    pub fn try_acquire(path: &Path) -> io::Result<Option<FileLock>> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(FileLock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    private_files::make_folder(path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
    private_files::open_to_write(path)
}

#[cfg(test)]
mod tests;
