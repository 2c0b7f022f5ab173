use std::{io, path::Path, time::Duration};

use codexec_files::FileLock;
use tokio::time::{Instant, sleep};

/// How long a writer waits for another codexec process.
const TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Locks the record at `path`, through a lock file next to it: the record itself is replaced.
pub(super) async fn acquire(path: &Path) -> io::Result<FileLock> {
    let lock_path = path.with_added_extension("lock");
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match FileLock::try_acquire(&lock_path)? {
            Some(lock) => return Ok(lock),
            // `flock` has no async wait, so this polls.
            None if Instant::now() < deadline => sleep(POLL_INTERVAL).await,
            None => {
                let text = "another codexec process holds the lock";
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
    }
}

#[cfg(test)]
mod tests;
