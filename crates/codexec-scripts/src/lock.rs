use std::{io, path::Path, time::Duration};

use codexec_files::FileLock;
use tokio::time::{Instant, sleep};

const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Acquires the lock of the library. Returns `None` after the timeout.
pub(crate) async fn acquire(folder: &Path, timeout: Duration) -> io::Result<Option<FileLock>> {
    let path = folder.join(".lock");
    let deadline = Instant::now() + timeout;
    loop {
        let lock = FileLock::try_acquire(&path)?;
        if lock.is_some() || Instant::now() >= deadline {
            return Ok(lock);
        }
        // `flock` has no async wait, so this polls.
        sleep(POLL_INTERVAL).await;
    }
}
