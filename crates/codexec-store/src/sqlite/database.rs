//! The writing connection and its lock.

use std::{
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode};

use super::{checkpoint::Checkpointer, schema::BUSY_TIMEOUT};

/// The writing connection. A write goes to the page cache and does not wait for the disk, so a
/// small one takes less time than waking another thread: [`Database::try_now`]. All other writes go
/// to the writer's thread.
#[derive(Debug)]
pub(crate) struct Database(Mutex<OpenDatabase>);

#[derive(Debug)]
pub(crate) struct OpenDatabase {
    pub(crate) conn: Connection,
    pub(crate) checkpointer: Checkpointer,
}

impl Database {
    pub(crate) fn new(conn: Connection) -> Database {
        let checkpointer = Checkpointer::start(&conn);
        Database(Mutex::new(OpenDatabase { conn, checkpointer }))
    }

    /// Locks the connection. Ignores poisoning: a panic in a statement does not damage SQLite.
    pub(crate) fn lock(&self) -> MutexGuard<'_, OpenDatabase> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one statement without ever waiting. Returns `None`, and changes nothing, if another
    /// thread or process has the lock.
    pub(crate) fn try_now<T>(
        &self,
        work: &impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Option<rusqlite::Result<T>> {
        let mut open = match self.0.try_lock() {
            Ok(open) => open,
            Err(TryLockError::Poisoned(open)) => open.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let result = open.conn.busy_timeout(Duration::ZERO).and_then(|()| work(&open.conn));
        let restored = open.conn.busy_timeout(BUSY_TIMEOUT);
        open.checkpointer.count_commit();
        match result {
            Err(err) if is_busy(&err) => None,
            Ok(_) | Err(_) => Some(restored.and(result)),
        }
    }
}

fn is_busy(err: &rusqlite::Error) -> bool {
    let code = err.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
