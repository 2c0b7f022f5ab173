use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    time::Duration,
};

use nix::fcntl::OFlag;
use tokio::time::Instant;

const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// One writer at a time, among all processes that share the library. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// `None`: somebody else had it all the time.
    pub(crate) async fn of(folder: &Path, patience: Duration) -> io::Result<Option<Lock>> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
            .open(folder.join(".lock"))?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Lock { _file: file })),
                // The kernel tells nobody when a lock is free, but by a thread that hangs.
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    tokio::time::sleep(LOCK_PAUSE).await;
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(err)) => return Err(err),
            }
        }
    }
}
