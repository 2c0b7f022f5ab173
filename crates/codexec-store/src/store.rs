use std::{path::Path, sync::Arc, time::SystemTime};

use codexec_types::{Admitted, ExecutionId};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{
    StoreError,
    database::Database,
    error::Cause,
    execution::{Counts, Execution, Finish, Summary},
    executions::{self, Begun, Finished},
    owner, schema,
    writer::{self, Job},
};

/// The most that [`Store::recent`] gives.
const RECENT_MAX: u32 = 1_000;

/// A longer text is left to the writer's thread.
const AT_ONCE_BYTES: usize = 64 << 10;

/// A handle to the database; clones share it. The database is closed when the last is dropped.
#[derive(Clone, Debug)]
pub struct Store {
    // Before the sender: the writer's thread then holds the last one, and closes it.
    database: Arc<Database>,
    jobs: mpsc::Sender<Job>,
    path: Arc<Path>,
    owner: Arc<str>,
    owners: owner::Folder,
}

#[derive(Debug, thiserror::Error)]
#[error("the database's thread has ended")]
struct Gone;

impl Store {
    /// Creates the file if need be, readable by its owner only. Its folder is the caller's.
    pub async fn open(path: &Path) -> Result<Store, StoreError> {
        let path: Arc<Path> = path.into();
        Store::start(Arc::clone(&path), owner::Folder::beside(&path), move || schema::open(&path))
            .await
    }

    pub async fn in_memory() -> Result<Store, StoreError> {
        let path = Path::new(":memory:").into();
        Store::start(path, owner::Folder::nowhere(), schema::in_memory).await
    }

    async fn start(
        path: Arc<Path>,
        owners: owner::Folder,
        open: impl FnOnce() -> Result<Connection, StoreError> + Send + 'static,
    ) -> Result<Store, StoreError> {
        let (jobs, queue) = mpsc::channel(writer::QUEUE);
        let (opened, is_open) = oneshot::channel();
        let (its_path, its_owners) = (Arc::clone(&path), owners.clone());
        let thread = writer::start(move || {
            let claimed = || {
                let alone = its_owners.alone().map_err(|err| StoreError::open(&its_path, err))?;
                let conn = open()?;
                drop(alone);
                let owner = claim(&conn, &its_owners, &its_path)?;
                Ok((conn, owner))
            };
            match claimed() {
                Ok((conn, owner)) => {
                    let database = Arc::new(Database::new(conn));
                    let _ = opened.send(Ok((Arc::clone(&database), owner.id.clone())));
                    writer::work(&database, queue);
                    // The lock goes last, when nothing more can be written.
                    drop(database);
                    drop(owner);
                }
                Err(err) => {
                    let _ = opened.send(Err(err));
                }
            }
        });
        thread.map_err(|err| StoreError::open(&path, err))?;
        let (database, owner) = is_open.await.map_err(|_| StoreError::open(&path, Gone))??;
        Ok(Store { database, jobs, path, owner: owner.into(), owners })
    }

    /// Writes down that `id` is about to run, before anything of it runs.
    pub async fn begin(
        &self,
        id: &ExecutionId,
        admitted: &Admitted,
        started: SystemTime,
    ) -> Result<(), StoreError> {
        let begun = Begun::new(id, admitted, started);
        let owner = Arc::clone(&self.owner);
        self.write(begun.text_bytes(), move |conn| begun.insert(conn, &owner)).await
    }

    /// Writes down how `id` ended. Only the first time: a second end changes nothing and is
    /// an error.
    pub async fn finish(&self, id: &ExecutionId, finish: Finish<'_>) -> Result<(), StoreError> {
        let finished = Finished::new(id, finish);
        let was_running =
            self.write(finished.text_bytes(), move |conn| finished.update(conn)).await?;
        if was_running { Ok(()) } else { Err(StoreError::NotRunning(id.clone())) }
    }

    pub async fn get(&self, id: &ExecutionId) -> Result<Option<Execution>, StoreError> {
        let id = id.clone();
        self.read(move |conn| executions::get(conn, &id)).await
    }

    /// The newest executions, without their texts; 1,000 at most.
    pub async fn recent(&self, limit: u32) -> Result<Vec<Summary>, StoreError> {
        self.read(move |conn| executions::recent(conn, limit.min(RECENT_MAX))).await
    }

    pub async fn counts(&self) -> Result<Counts, StoreError> {
        self.read(executions::counts).await
    }

    /// Ends the executions whose server died while they ran, as `failed` with the code
    /// `interrupted`; says how many. Those of servers that live are left alone.
    pub async fn interrupt_leftovers(&self, now: SystemTime) -> Result<u64, StoreError> {
        let owners = self.owners.clone();
        let changed = self.queue(move |conn| {
            let changed = executions::interrupt(conn, &owners, now)?;
            owners.tidy();
            Ok(changed)
        });
        changed.await.map_err(|cause| StoreError::write(&self.path, cause))
    }

    /// One statement, at once if it is short and nothing is in the way.
    async fn write<T: Send + 'static>(
        &self,
        text_bytes: usize,
        work: impl Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        // Who comes later does not overtake who waits.
        let is_free = self.jobs.capacity() == writer::QUEUE && text_bytes <= AT_ONCE_BYTES;
        let done = if is_free { self.database.at_once(&work) } else { None };
        let result = match done {
            Some(result) => result.map_err(|err| -> Cause { Arc::new(err) }),
            None => self.queue(work).await,
        };
        result.map_err(|cause| StoreError::write(&self.path, cause))
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.queue(work).await.map_err(|cause| StoreError::read(&self.path, cause))
    }

    async fn queue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Cause> {
        let (sender, receiver) = oneshot::channel::<Result<T, Cause>>();
        let job: Job = Box::new(move |conn| {
            let result = conn.and_then(|conn| work(conn).map_err(|err| -> Cause { Arc::new(err) }));
            Box::new(move |committed| {
                let _ = sender.send(result.and_then(|value| committed.map(|()| value)));
            })
        });
        self.jobs.send(job).await.map_err(|_| -> Cause { Arc::new(Gone) })?;
        receiver.await.unwrap_or_else(|_| Err(Arc::new(Gone)))
    }
}

fn claim(
    conn: &Connection,
    owners: &owner::Folder,
    path: &Path,
) -> Result<owner::Owner, StoreError> {
    let bits: [u8; 16] = conn
        .query_row("SELECT randomblob(16)", [], |row| row.get(0))
        .map_err(|err| StoreError::open(path, err))?;
    owners.claim(u128::from_ne_bytes(bits)).map_err(|err| StoreError::open(path, err))
}

#[cfg(test)]
mod tests;
