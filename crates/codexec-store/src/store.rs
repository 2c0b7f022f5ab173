mod sessions;

use std::{path::Path, sync::Arc, time::SystemTime};

use codexec_types::ExecutionId;
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{
    ReadScope, StoreError, calls,
    database::Database,
    disk_space::DiskSpace,
    error::Cause,
    execution::{ExecutionCounts, ExecutionRecord, ExecutionSummary},
    index,
    journal::Journal,
    log_thread::LogThread,
    owner,
    pending_ends::{PendingEnd, PendingEnds},
    query::{LogPage, LogQuery},
    read,
    readers::Readers,
    record::{CallEnd, CallStart, Durability, ExecutionEnd, ExecutionStart},
    retention::{LastPass, Retention, RetentionReport},
    savepoint::run_atomically,
    schema,
    search::{self, OwnRows},
    write::{ExecutionEndRow, ExecutionStartRow},
    writer::{self, WriteJob},
};

/// The limit of [`Store::list_recent`].
const RECENT_MAX: u32 = 1_000;

/// Writes with longer texts go to the writer's thread.
const INLINE_BYTES: usize = 64 << 10;

/// A handle to the database. Clones share it; the last drop closes it.
#[derive(Clone, Debug)]
pub struct Store {
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
    call_ends: Arc<calls::PendingCallEnds>,
    pending_ends: Arc<PendingEnds>,
    last_pass: Arc<LastPass>,
}

#[derive(Debug, thiserror::Error)]
#[error("the database's thread has ended")]
struct DatabaseThreadEnded;

impl Store {
    /// Opens the database, or creates it with mode 0600. Its folder must exist.
    pub async fn open(path: &Path, durability: Durability) -> Result<Store, StoreError> {
        let path: Arc<Path> = path.into();
        let owners = owner::OwnerFolder::next_to(&path);
        let open = {
            let path = Arc::clone(&path);
            move || schema::open(&path, durability)
        };
        Store::start(path, owners, durability, open).await
    }

    async fn start(
        path: Arc<Path>,
        owners: owner::OwnerFolder,
        durability: Durability,
        open: impl FnOnce() -> Result<Connection, StoreError> + Send + 'static,
    ) -> Result<Store, StoreError> {
        let (jobs, queue) = mpsc::channel(writer::QUEUE);
        let (opened, is_open) = oneshot::channel();
        let (thread_path, thread_owners) = (Arc::clone(&path), owners.clone());
        let thread = writer::start(move || {
            let open_and_claim = || {
                let failed = |err| StoreError::open(&thread_path, err);
                let lock = thread_owners.lock_opening().map_err(failed)?;
                let conn = open()?;
                drop(lock);
                let owner = claim(&conn, &thread_owners, &thread_path)?;
                let after =
                    read::last_end(&conn).map_err(|err| StoreError::open(&thread_path, err))?;
                Ok((conn, owner, after))
            };
            match open_and_claim() {
                Ok((conn, owner, after)) => {
                    let database = Arc::new(Database::new(conn));
                    let _ = opened.send(Ok((Arc::clone(&database), owner.id.clone(), after)));
                    writer::run(&database, queue);
                    // The owner's lock is released last, when nothing can be written any more.
                    drop(database);
                    drop(owner);
                }
                Err(err) => {
                    let _ = opened.send(Err(err));
                }
            }
        });
        thread.map_err(|err| StoreError::open(&path, err))?;
        let (database, owner, after) =
            is_open.await.map_err(|_| StoreError::open(&path, DatabaseThreadEnded))??;
        let owner: Arc<str> = owner.into();
        let pending_ends = Arc::<PendingEnds>::default();
        let journal = Journal::new(&path, Arc::clone(&owner), owners.clone(), durability);
        let log_thread = LogThread::start(
            Arc::clone(&path),
            Arc::clone(&database),
            journal,
            Arc::clone(&pending_ends),
        );
        let log_thread = Arc::new(log_thread.map_err(|err| StoreError::open(&path, err))?);
        let readers = Arc::new(Readers::new(Arc::clone(&path)));
        let call_ends = Arc::default();
        Ok(Store {
            database,
            jobs,
            log_thread,
            readers,
            path,
            owner,
            after,
            owners,
            durability,
            call_ends,
            pending_ends,
            last_pass: Arc::default(),
        })
    }

    /// Returns the id of this server process in the records.
    pub fn server_id(&self) -> &str {
        &self.owner
    }

    /// Records the start of an execution, before any of it runs.
    pub async fn begin(&self, begin: ExecutionStart<'_>) -> Result<(), StoreError> {
        self.check_disk_space().await?;
        let row = ExecutionStartRow::new(&begin);
        let row = match row.text_bytes() > INLINE_BYTES {
            // Masking a long text would block the event loop.
            true => tokio::task::spawn_blocking(move || row.mask())
                .await
                .map_err(|err| StoreError::write(&self.path, Arc::new(err)))?,
            false => row.mask(),
        };
        let owner = Arc::clone(&self.owner);
        self.write(row.text_bytes(), move |conn| row.insert(conn, &owner)).await
    }

    /// Records a tool call of `id` before it is sent. The caller numbers the calls.
    pub async fn begin_call(
        &self,
        id: &ExecutionId,
        number: u32,
        call: &CallStart<'_>,
    ) -> Result<(), StoreError> {
        let row = calls::NewCall::new(id, number, call);
        let is_running = self.write(row.text_bytes(), move |conn| row.insert(conn)).await?;
        if is_running { Ok(()) } else { Err(StoreError::NotRunning(id.clone())) }
    }

    /// Records the end of a tool call of `id`, at the latest when its execution ends.
    pub async fn finish_call(&self, id: &ExecutionId, number: u32, end: CallEnd<'_>) {
        if !self.call_ends.push(id, calls::FinishedCall::new(number, &end)) {
            return;
        }
        let (execution, ends) = (id.clone(), self.call_ends.take(id));
        let written = self.queue(move |conn| {
            run_atomically(conn, || ends.iter().try_for_each(|end| end.update(conn, &execution)))
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "cannot write the ends of tool calls of {id}");
        }
    }

    /// Records the end of `id`. A second end changes nothing and is an error. An end that cannot
    /// be written is an error, too; the store retries it in the background.
    pub async fn finish(
        &self,
        id: &ExecutionId,
        finish: ExecutionEnd<'_>,
    ) -> Result<(), StoreError> {
        let finished = ExecutionEndRow::new(id, &finish);
        let text_bytes = finish.output.text().len() + finish.value.map_or(0, str::len);
        let finished = match text_bytes > INLINE_BYTES {
            true => {
                let (written, value) = (finish.output.clone(), finish.value.map(str::to_owned));
                let mask = move || finished.with_texts(&written, value.as_deref());
                tokio::task::spawn_blocking(mask)
                    .await
                    .map_err(|err| StoreError::write(&self.path, Arc::new(err)))?
            }
            false => finished.with_texts(finish.output, finish.value),
        };
        let calls = self.call_ends.take(id);
        let text_bytes = finished.text_bytes();
        let end = Arc::new(PendingEnd { finished, calls });
        let written = Arc::clone(&end);
        let was_running = match self.write(text_bytes, move |conn| written.update(conn)).await {
            Ok(was_running) => was_running,
            Err(error) => {
                self.pending_ends.push(end);
                self.log_thread.retry();
                return Err(error);
            }
        };
        self.log_thread.add_entry();
        if was_running { Ok(()) } else { Err(StoreError::NotRunning(id.clone())) }
    }

    /// Searches the executions that the scope includes.
    pub async fn search(&self, query: &LogQuery, scope: &ReadScope) -> Result<LogPage, StoreError> {
        if query.text.is_some() {
            let indexed = self.log_thread.update_index().await;
            indexed.map_err(|cause| StoreError::read(&index::path(&self.path), cause))?;
        }
        let (query, index, scope) = (query.clone(), index::path(&self.path), scope.clone());
        let own = OwnRows { owner: Arc::clone(&self.owner), after: self.after };
        self.read(move |conn| search::search(conn, &index, &query, (&scope, &own))).await
    }

    /// Returns an execution, if the scope includes it.
    pub async fn get(
        &self,
        id: &ExecutionId,
        scope: &ReadScope,
    ) -> Result<Option<ExecutionRecord>, StoreError> {
        let (id, scope, owner) = (id.clone(), scope.clone(), Arc::clone(&self.owner));
        self.read(move |conn| read::get(conn, &id, &scope, &owner)).await
    }

    /// Tells whether there is an execution with this id in the scope.
    pub async fn contains(&self, id: &ExecutionId, scope: &ReadScope) -> Result<bool, StoreError> {
        let (id, scope, owner) = (id.clone(), scope.clone(), Arc::clone(&self.owner));
        self.read(move |conn| Ok(read::find(conn, &id, &scope, &owner)?.is_some())).await
    }

    /// Lists the newest executions of the scope without their texts; at most 1,000.
    pub async fn list_recent(
        &self,
        limit: u32,
        scope: &ReadScope,
    ) -> Result<Vec<ExecutionSummary>, StoreError> {
        let (scope, owner) = (scope.clone(), Arc::clone(&self.owner));
        self.read(move |conn| read::list_recent(conn, limit.min(RECENT_MAX), &scope, &owner)).await
    }

    pub async fn count_executions(&self, scope: &ReadScope) -> Result<ExecutionCounts, StoreError> {
        let (scope, owner) = (scope.clone(), Arc::clone(&self.owner));
        self.read(move |conn| read::count(conn, &scope, &owner)).await
    }

    /// Ends the running executions of dead servers, as `failed` with the code `interrupted`.
    /// Returns how many. Executions of living servers are left alone.
    pub async fn interrupt_leftovers(&self, now: SystemTime) -> Result<u64, StoreError> {
        let owners = self.owners.clone();
        let changed = self.queue(move |conn| {
            let changed = run_atomically(conn, || {
                let changed = read::interrupt_orphans(conn, &owners, now)?;
                crate::sessions::end_orphans(conn, &owners, now)?;
                Ok(changed)
            })?;
            owners.remove_dead();
            Ok(changed)
        });
        let changed = changed.await.map_err(|cause| StoreError::write(&self.path, cause))?;
        self.log_thread.take_over();
        Ok(changed)
    }

    /// Removes expired executions and sessions, and the oldest ones if all together take too much
    /// space. Each call removes a limited number. Call this about once an hour.
    pub async fn apply_retention(
        &self,
        retention: &Retention,
        now: SystemTime,
    ) -> Result<RetentionReport, StoreError> {
        let (retention, last_pass) = (retention.clone(), Arc::clone(&self.last_pass));
        let (database, path) = (Arc::clone(&self.database), Arc::clone(&self.path));
        let run = move || last_pass.run(&retention, now, &database, &path);
        let done = tokio::task::spawn_blocking(run);
        let done = done.await.map_err(|err| StoreError::write(&self.path, Arc::new(err)))?;
        done.map_err(|err| StoreError::write(&self.path, Arc::new(err)))
    }

    /// Waits until all entries of this server are in the log files. Failed writes are retried;
    /// whatever is left when this server ends, the next one writes.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let written = self.log_thread.flush_logs().await;
        written.map_err(|cause| StoreError::write(&self.path.with_file_name("logs"), cause))
    }

    /// Fails if an execution that begins now might not be finished for lack of disk space.
    async fn check_disk_space(&self) -> Result<(), StoreError> {
        if !self.pending_ends.is_empty() {
            // An error does not matter, as long as no end is pending afterwards.
            let _ = self.log_thread.flush_logs().await;
        }
        let space = DiskSpace::measure(&self.path);
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
        result.map_err(|cause| StoreError::write(&self.path, cause))
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.readers.read(work).await.map_err(|cause| StoreError::read(&self.path, cause))
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

fn claim(
    conn: &Connection,
    owners: &owner::OwnerFolder,
    path: &Path,
) -> Result<owner::OwnerLock, StoreError> {
    let bits: [u8; 16] = conn
        .query_row("SELECT randomblob(16)", [], |row| row.get(0))
        .map_err(|err| StoreError::open(path, err))?;
    owners.claim(u128::from_ne_bytes(bits)).map_err(|err| StoreError::open(path, err))
}

#[cfg(test)]
mod tests;
