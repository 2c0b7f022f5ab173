use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use nix::fcntl::OFlag;
use tokio::time::Instant;

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The lock of the library, which one process at a time holds. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct LibraryLock {
    _file: File,
}

impl LibraryLock {
    /// Acquires the lock. Returns `None` after the timeout.
    pub(crate) async fn acquire(
        folder: &Path,
        timeout: Duration,
    ) -> io::Result<Option<LibraryLock>> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
            .open(folder.join(".lock"))?;
        let deadline = Instant::now() + timeout;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(LibraryLock { _file: file })),
                // `flock` has no async wait, so this polls.
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(err)) => return Err(err),
            }
        }
    }
}
