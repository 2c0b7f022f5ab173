//! Read-only connections. In WAL mode readers block neither writers nor each other.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::schema::BUSY_TIMEOUT;
use crate::error::Cause;

/// The maximum number of concurrent readers.
const READERS: usize = 4;

#[derive(Debug)]
pub(crate) struct Readers {
    path: Arc<Path>,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Readers {
    pub(crate) fn new(path: Arc<Path>) -> Readers {
        Readers { path, idle: Mutex::default(), permits: Semaphore::new(READERS) }
    }

    /// Runs a read on a blocking thread. The read sees all earlier commits.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Cause> {
        let _permit = self.permits.acquire().await.map_err(|err| -> Cause { Arc::new(err) })?;
        let readers = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let idle = readers.idle().pop();
            let mut conn = idle.map_or_else(|| open(&readers.path), Ok)?;
            let result = work(&mut conn);
            readers.idle().push(conn);
            result
        });
        let done = done.await.map_err(|err| -> Cause { Arc::new(err) })?;
        done.map_err(|err| -> Cause { Arc::new(err) })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a read-only connection to an existing database.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_timeout(BUSY_TIMEOUT)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}
