//! The store in one SQLite file, which several server processes may share.
//!
//! The rows are the source of truth. A background thread (`log_thread.rs`) writes the log files
//! (`unlogged.rs`) and updates the search index (`index.rs`); both can be rebuilt from the rows.

mod calls;
mod checkpoint;
mod database;
mod error;
mod index;
mod log_thread;
mod opening;
mod owner;
mod read;
mod readers;
mod retention;
mod savepoint;
mod schema;
mod search;
mod sessions;
mod unlogged;
mod write;
mod writer;

use std::{path::Path, sync::Arc, time::SystemTime};

use codexec_types::ExecutionId;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use self::{
    checkpoint::measure_space,
    database::Database,
    error::{read_error, write_error},
    log_thread::LogThread,
    readers::Readers,
    retention::LastPass,
    savepoint::run_atomically,
    search::OwnRows,
    writer::WriteJob,
};
use crate::{
    ReadScope, StoreError,
    call_row::{FinishedCall, NewCall},
    disk_space::DiskSpace,
    error::Cause,
    execution::{
        ExecutionCounts, ExecutionRecord, ExecutionSummary, ExecutionTotals, SessionRecord,
    },
    execution_row::ExecutionStartRow,
    pending_ends::{PendingEnd, PendingEnds},
    query::{LogPage, LogQuery, SessionQuery},
    record::Durability,
    retention::{Retention, RetentionReport},
    session_row::{PackageInstallRow, SessionEndRow, SessionStartRow},
};

/// Writes with longer texts go to the writer's thread.
const INLINE_BYTES: usize = 64 << 10;

/// A handle to the database. Clones share it; the last drop closes it.
#[derive(Clone, Debug)]
pub(crate) struct SqliteStore {
    // Dropped before the sender, so that the writer's thread holds the last reference and closes
    // the database.
    database: Arc<Database>,
    jobs: mpsc::Sender<WriteJob>,
    log_thread: Arc<LogThread>,
    readers: Arc<Readers>,
    path: Arc<Path>,
    owner: Arc<str>,
    /// The last end number before this server opened the database.
    after: i64,
    owners: owner::OwnerFolder,
    durability: Durability,
    pending_ends: Arc<PendingEnds>,
    last_pass: Arc<LastPass>,
}

#[derive(Debug, thiserror::Error)]
#[error("the database's thread has ended")]
struct DatabaseThreadEnded;

impl SqliteStore {
    pub(crate) fn server_id(&self) -> &str {
        &self.owner
    }

    /// Returns the path of the database, for error messages.
    pub(crate) fn database(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) async fn begin(&self, row: ExecutionStartRow) -> Result<(), StoreError> {
        self.check_disk_space().await?;
        let owner = Arc::clone(&self.owner);
        self.write(row.text_bytes(), move |conn| write::insert(conn, &row, &owner)).await
    }

    /// Returns false if the execution is not running.
    pub(crate) async fn begin_call(&self, row: NewCall) -> Result<bool, StoreError> {
        self.write(row.text_bytes(), move |conn| calls::insert(conn, &row)).await
    }

    pub(crate) async fn finish_calls(
        &self,
        id: &ExecutionId,
        ends: Vec<FinishedCall>,
    ) -> Result<(), StoreError> {
        let id = id.clone();
        let written = self.queue(move |conn| {
            run_atomically(conn, || ends.iter().try_for_each(|end| calls::update(conn, &id, end)))
        });
        written.await.map_err(|cause| write_error(&self.path, cause))
    }

    /// Ends an execution. Returns false if it was not running. An end that cannot be written is
    /// retried in the background.
    pub(crate) async fn finish(&self, end: PendingEnd) -> Result<bool, StoreError> {
        let (text_bytes, end) = (end.finished.text_bytes(), Arc::new(end));
        let written = Arc::clone(&end);
        match self.write(text_bytes, move |conn| write::end(conn, &written)).await {
            Ok(was_running) => {
                self.log_thread.add_entry();
                Ok(was_running)
            }
            Err(error) => {
                self.pending_ends.push(end);
                self.log_thread.retry();
                Err(error)
            }
        }
    }

    pub(crate) async fn begin_session(&self, row: SessionStartRow) -> Result<(), StoreError> {
        let owner = Arc::clone(&self.owner);
        self.write_entry(move |conn| sessions::insert(conn, &row, &owner)).await
    }

    pub(crate) async fn record_package_install(
        &self,
        row: PackageInstallRow,
    ) -> Result<(), StoreError> {
        let owner = Arc::clone(&self.owner);
        self.write_entry(move |conn| sessions::insert_package(conn, &row, &owner)).await
    }

    /// Returns false, and changes nothing, if the session has already ended.
    pub(crate) async fn end_session(&self, row: SessionEndRow) -> Result<bool, StoreError> {
        self.write_entry(move |conn| sessions::end(conn, &row)).await
    }

    pub(crate) async fn list_sessions(
        &self,
        query: SessionQuery,
        scope: ReadScope,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let owner = Arc::clone(&self.owner);
        self.read(move |conn| sessions::list(conn, &query, &scope, &owner)).await
    }

    pub(crate) async fn search(
        &self,
        query: LogQuery,
        scope: ReadScope,
    ) -> Result<LogPage, StoreError> {
        let index = index::path(&self.path);
        if query.text.is_some() {
            let indexed = self.log_thread.update_index().await;
            indexed.map_err(|cause| read_error(&index, cause))?;
        }
        let own = OwnRows { owner: Arc::clone(&self.owner), after: self.after };
        self.read(move |conn| search::search(conn, &index, &query, (&scope, &own))).await
    }

    pub(crate) async fn get(
        &self,
        id: ExecutionId,
        scope: ReadScope,
    ) -> Result<Option<ExecutionRecord>, StoreError> {
        let owner = Arc::clone(&self.owner);
        self.read(move |conn| read::get(conn, &id, &scope, &owner)).await
    }

    pub(crate) async fn contains(
        &self,
        id: ExecutionId,
        scope: ReadScope,
    ) -> Result<bool, StoreError> {
        let owner = Arc::clone(&self.owner);
        self.read(move |conn| Ok(read::find(conn, &id, &scope, &owner)?.is_some())).await
    }

    pub(crate) async fn list_recent(
        &self,
        limit: u32,
        scope: ReadScope,
    ) -> Result<Vec<ExecutionSummary>, StoreError> {
        let owner = Arc::clone(&self.owner);
        self.read(move |conn| read::list_recent(conn, limit, &scope, &owner)).await
    }

    pub(crate) async fn count_executions(
        &self,
        scope: ReadScope,
    ) -> Result<ExecutionCounts, StoreError> {
        let owner = Arc::clone(&self.owner);
        self.read(move |conn| read::count(conn, &scope, &owner)).await
    }

    pub(crate) async fn count_totals(
        &self,
        scope: ReadScope,
    ) -> Result<ExecutionTotals, StoreError> {
        let owner = Arc::clone(&self.owner);
        self.read(move |conn| read::count_totals(conn, &scope, &owner)).await
    }

    pub(crate) async fn interrupt_leftovers(&self, now: SystemTime) -> Result<u64, StoreError> {
        let owners = self.owners.clone();
        let changed = self.queue(move |conn| {
            let changed = run_atomically(conn, || {
                let changed = read::interrupt_orphans(conn, &owners, now)?;
                sessions::end_orphans(conn, &owners, now)?;
                Ok(changed)
            })?;
            owners.remove_dead();
            Ok(changed)
        });
        let changed = changed.await.map_err(|cause| write_error(&self.path, cause))?;
        self.log_thread.take_over();
        Ok(changed)
    }

    pub(crate) async fn apply_retention(
        &self,
        retention: Retention,
        now: SystemTime,
    ) -> Result<RetentionReport, StoreError> {
        let last_pass = Arc::clone(&self.last_pass);
        let (database, path) = (Arc::clone(&self.database), Arc::clone(&self.path));
        let run = move || last_pass.run(&retention, now, &database, &path);
        let done = tokio::task::spawn_blocking(run);
        let done = done.await.map_err(|err| write_error(&self.path, Arc::new(err)))?;
        done.map_err(|err| write_error(&self.path, Arc::new(err)))
    }

    pub(crate) async fn flush(&self) -> Result<(), StoreError> {
        let written = self.log_thread.flush_logs().await;
        written.map_err(|cause| write_error(&self.path.with_file_name("logs"), cause))
    }

    /// Fails if an execution that begins now might not be finished for lack of disk space.
    async fn check_disk_space(&self) -> Result<(), StoreError> {
        if !self.pending_ends.is_empty() {
            // An error does not matter, as long as no end is pending afterwards.
            let _ = self.log_thread.flush_logs().await;
        }
        let space = measure_space(&self.path);
        if space.is_some_and(DiskSpace::is_low) || !self.pending_ends.is_empty() {
            return Err(StoreError::full(&self.path, space));
        }
        Ok(())
    }

    /// Runs one statement: immediately if it is short and the database is free, or else on the
    /// writer's thread.
    async fn write<T: Send + 'static>(
        &self,
        text_bytes: usize,
        work: impl Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        // A new write does not overtake queued ones.
        let is_free = self.durability == Durability::Process
            && self.jobs.capacity() == writer::QUEUE
            && text_bytes <= INLINE_BYTES;
        let done = if is_free { self.database.try_now(&work) } else { None };
        let result = match done {
            Some(result) => result.map_err(|err| -> Cause { Arc::new(err) }),
            None => self.queue(work).await,
        };
        result.map_err(|cause| write_error(&self.path, cause))
    }

    /// Writes rows that have a line in the log files.
    async fn write_entry<T: Send + 'static>(
        &self,
        work: impl Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let written = self.write(0, work).await;
        self.log_thread.add_entry();
        written
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.readers.read(work).await.map_err(|cause| read_error(&self.path, cause))
    }

    async fn queue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Cause> {
        let (sender, receiver) = oneshot::channel::<Result<T, Cause>>();
        let job: WriteJob = Box::new(move |conn| {
            let result = conn.and_then(|conn| work(conn).map_err(|err| -> Cause { Arc::new(err) }));
            Box::new(move |committed| {
                let _ = sender.send(result.and_then(|value| committed.map(|()| value)));
            })
        });
        self.jobs.send(job).await.map_err(|_| -> Cause { Arc::new(DatabaseThreadEnded) })?;
        receiver.await.unwrap_or_else(|_| Err(Arc::new(DatabaseThreadEnded)))
    }
}

#[cfg(test)]
mod tests;
