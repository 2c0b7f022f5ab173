//! The connection, and who may use it when.

use std::{
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode};

use crate::{checkpoint::Checkpointer, schema::BUSY};

/// A write goes to a file in memory and waits for no disk, so a small one takes less time than
/// waking another thread: [`Database::at_once`]. Everything else goes to the writer's thread.
#[derive(Debug)]
pub(crate) struct Database(Mutex<Open>);

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) conn: Connection,
    pub(crate) checkpointer: Checkpointer,
}

impl Database {
    pub(crate) fn new(conn: Connection) -> Database {
        let checkpointer = Checkpointer::start(&conn);
        Database(Mutex::new(Open { conn, checkpointer }))
    }

    /// A panic in a statement leaves SQLite itself whole.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One statement, without ever waiting: `None` if a thread or process is in the way, and
    /// then nothing was done.
    pub(crate) fn at_once<T>(
        &self,
        work: &impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Option<rusqlite::Result<T>> {
        let mut open = match self.0.try_lock() {
            Ok(open) => open,
            Err(TryLockError::Poisoned(open)) => open.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let result = open.conn.busy_timeout(Duration::ZERO).and_then(|()| work(&open.conn));
        let patient = open.conn.busy_timeout(BUSY);
        open.checkpointer.committed();
        match result {
            Err(err) if is_busy(&err) => None,
            Ok(_) | Err(_) => Some(patient.and(result)),
        }
    }
}

fn is_busy(err: &rusqlite::Error) -> bool {
    let code = err.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
