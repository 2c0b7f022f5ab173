//! Copies SQLite's write-ahead log (WAL) back into the database, on a separate thread. Only that
//! thread waits for the disk; SQLite allows writes meanwhile.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
};

use rusqlite::Connection;

use super::schema::BUSY_TIMEOUT;
use crate::disk_space::DiskSpace;

/// Commits between two checkpoints: about a thousand pages of WAL.
const CHECKPOINT_COMMITS: u32 = 512;

/// With long rows, a checkpoint also follows when the file has grown by this much. A checkpoint
/// does not shrink the file; SQLite fills it again from its beginning.
const CHECKPOINT_BYTES: u64 = 8 << 20;

/// How many commits lie between two checks of the file's length.
const CHECK_COMMITS: u32 = 16;

/// Beyond this length writers wait until the WAL is truncated. Without pauses between writes it
/// would otherwise never start again from its beginning.
const MAX_WAL_BYTES: u64 = 32 << 20;

/// A WAL longer than this is checkpointed at startup: short-lived servers never reach the limits
/// above.
const STARTUP_WAL_BYTES: u64 = 4 << 20;

/// Counts commits and wakes the checkpoint thread.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    wake: Option<(SyncSender<()>, String)>,
    commits: u32,
    /// The file's length after the last checkpoint.
    last_bytes: Arc<AtomicU64>,
}

impl Checkpointer {
    /// Starts the thread for the database of `conn`. A database in memory has no WAL.
    pub(crate) fn start(conn: &Connection) -> Checkpointer {
        let path = conn.path().filter(|path| !path.is_empty());
        let last_bytes = Arc::<AtomicU64>::default();
        let thread_bytes = Arc::clone(&last_bytes);
        let wake = path.and_then(|path| {
            let (path, thread_path) = (path.to_owned(), path.to_owned());
            let (wake, woken) = sync_channel(1);
            if wal_bytes(&path) > STARTUP_WAL_BYTES {
                let _ = wake.try_send(());
            }
            let thread = thread::Builder::new().name("codexec-wal".to_owned());
            let started = thread.spawn(move || {
                while woken.recv().is_ok() {
                    if let Err(err) = checkpoint(&thread_path) {
                        let error = &err as &dyn std::error::Error;
                        tracing::warn!(error, "cannot checkpoint the database's write-ahead log");
                    }
                    thread_bytes.store(wal_bytes(&thread_path), Relaxed);
                }
            });
            started.is_ok().then_some((wake, path))
        });
        Checkpointer { wake, commits: 0, last_bytes }
    }

    /// Counts a commit, and wakes the thread when a checkpoint is due.
    pub(crate) fn count_commit(&mut self) {
        self.commits += 1;
        let Some((wake, path)) = &self.wake else { return };
        let is_check = self.commits.is_multiple_of(CHECK_COMMITS);
        let is_long = || wal_bytes(path) > self.last_bytes.load(Relaxed) + CHECKPOINT_BYTES;
        if self.commits >= CHECKPOINT_COMMITS || is_check && is_long() {
            self.commits = 0;
            // Fails if the thread is already woken, which is as good.
            let _ = wake.try_send(());
        }
    }
}

fn checkpoint(path: &str) -> rusqlite::Result<()> {
    // Opened each time, because an open connection would keep SQLite from removing the WAL.
    let conn = Connection::open(path)?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.pragma_update(None, "synchronous", "normal")?;
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    if wal_bytes(path) > MAX_WAL_BYTES {
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    // The first write after a checkpoint restarts the WAL and waits for the disk. This dummy write
    // takes that wait, so that no request does.
    conn.execute("UPDATE removed SET end_number = end_number", [])?;
    Ok(())
}

/// Measures the space on the database's disk. A checkpoint may copy the WAL to the database at any
/// moment, which needs its length.
pub(crate) fn measure_space(database: &Path) -> Option<DiskSpace> {
    DiskSpace::measure(database.parent()?, wal_bytes(database.to_str().unwrap_or_default()))
}

fn wal_bytes(path: &str) -> u64 {
    fs::metadata(format!("{path}-wal")).map_or(0, |metadata| metadata.len())
}
