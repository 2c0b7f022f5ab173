//! Writing the log back into the database, on a thread of its own: it alone waits for the disk,
//! and SQLite lets writes go on meanwhile.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
};

use rusqlite::Connection;

use crate::schema::BUSY;

/// About a thousand pages of log.
const COMMITS: u32 = 512;

/// Or when the file has grown by so much, where rows are long. It does not become shorter by being
/// written back: it is filled again from its beginning.
const LONG_BYTES: u64 = 8 << 20;

/// How many commits lie between two looks at the length.
const LOOK: u32 = 16;

/// From here on writers wait until the log is empty; else, with no pause between writes, it
/// would never start anew.
const LOG_BYTES: u64 = 32 << 20;

/// A log this long at the start was left by servers that each wrote little.
const LEFT_BYTES: u64 = 4 << 20;

/// Counts commits and wakes the thread that empties the log.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    wake: Option<(SyncSender<()>, String)>,
    commits: u32,
    /// How long the file was when it was last written back.
    bytes_then: Arc<AtomicU64>,
}

impl Checkpointer {
    /// For the database that `conn` has open. One in memory has no log.
    pub(crate) fn start(conn: &Connection) -> Checkpointer {
        let path = conn.path().filter(|path| !path.is_empty());
        let bytes_then = Arc::<AtomicU64>::default();
        let its_bytes = Arc::clone(&bytes_then);
        let wake = path.and_then(|path| {
            let (path, its_path) = (path.to_owned(), path.to_owned());
            let (wake, woken) = sync_channel(1);
            if log_bytes(&path) > LEFT_BYTES {
                let _ = wake.try_send(());
            }
            let thread = thread::Builder::new().name("codexec-log".to_owned());
            let started = thread.spawn(move || {
                while woken.recv().is_ok() {
                    if let Err(err) = checkpoint(&path) {
                        let error = &err as &dyn std::error::Error;
                        tracing::warn!(error, "the database's log stays long");
                    }
                    its_bytes.store(log_bytes(&path), Relaxed);
                }
            });
            started.is_ok().then_some((wake, its_path))
        });
        Checkpointer { wake, commits: 0, bytes_then }
    }

    pub(crate) fn committed(&mut self) {
        self.commits += 1;
        let Some((wake, path)) = &self.wake else { return };
        let is_look = self.commits.is_multiple_of(LOOK);
        let is_long = || log_bytes(path) > self.bytes_then.load(Relaxed) + LONG_BYTES;
        if self.commits >= COMMITS || is_look && is_long() {
            self.commits = 0;
            // Still busy with the last time: then this time is part of the next.
            let _ = wake.try_send(());
        }
    }
}

fn checkpoint(path: &str) -> rusqlite::Result<()> {
    // Opened each time: a connection that stays open would keep the log from being removed.
    let conn = Connection::open(path)?;
    conn.busy_timeout(BUSY)?;
    conn.pragma_update(None, "synchronous", "normal")?;
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
    if log_bytes(path) > LOG_BYTES {
        conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    }
    // The next write begins the log anew and waits for the disk. That is this one, and not one
    // that a request waits for.
    conn.execute("UPDATE removed SET end_number = end_number", [])?;
    Ok(())
}

pub(crate) fn log_bytes(path: &str) -> u64 {
    fs::metadata(format!("{path}-wal")).map_or(0, |log| log.len())
}
