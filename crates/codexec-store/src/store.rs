mod sessions;

use std::{path::Path, sync::Arc, time::SystemTime};

use codexec_types::{ExecutionId, Principal};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{
    StoreError, calls,
    clerk::Clerk,
    database::Database,
    error::Cause,
    execution::{Counts, Execution, Summary},
    index,
    journal::Journal,
    late::{End, Late},
    owner,
    query::{LogPage, LogQuery},
    read,
    readers::Readers,
    record::{Begin, CallEnd, Durability, Finish, ToolCall},
    retention::{Pass, Removed, Retention},
    room::Room,
    savepoint::atomically,
    schema,
    search::{self, OwnRows},
    write::{Begun, Finished},
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
    clerk: Arc<Clerk>,
    readers: Arc<Readers>,
    path: Arc<Path>,
    owner: Arc<str>,
    /// The last end before we opened the database.
    after: i64,
    owners: owner::Folder,
    durability: Durability,
    call_ends: Arc<calls::Waiting>,
    late: Arc<Late>,
    pass: Arc<Pass>,
}

#[derive(Debug, thiserror::Error)]
#[error("the database's thread has ended")]
struct Gone;

impl Store {
    /// Creates the file if need be, readable by its owner only. Its folder is the caller's.
    pub async fn open(path: &Path, durability: Durability) -> Result<Store, StoreError> {
        let path: Arc<Path> = path.into();
        let owners = owner::Folder::beside(&path);
        let open = {
            let path = Arc::clone(&path);
            move || schema::open(&path, durability)
        };
        Store::start(path, owners, durability, open).await
    }

    async fn start(
        path: Arc<Path>,
        owners: owner::Folder,
        durability: Durability,
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
                let after =
                    read::last_end(&conn).map_err(|err| StoreError::open(&its_path, err))?;
                Ok((conn, owner, after))
            };
            match claimed() {
                Ok((conn, owner, after)) => {
                    let database = Arc::new(Database::new(conn));
                    let _ = opened.send(Ok((Arc::clone(&database), owner.id.clone(), after)));
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
        let (database, owner, after) =
            is_open.await.map_err(|_| StoreError::open(&path, Gone))??;
        let owner: Arc<str> = owner.into();
        let late = Arc::<Late>::default();
        let journal = Journal::new(&path, Arc::clone(&owner), owners.clone(), durability);
        let clerk =
            Clerk::start(Arc::clone(&path), Arc::clone(&database), journal, Arc::clone(&late));
        let clerk = Arc::new(clerk.map_err(|err| StoreError::open(&path, err))?);
        let readers = Arc::new(Readers::new(Arc::clone(&path)));
        let call_ends = Arc::default();
        Ok(Store {
            database,
            jobs,
            clerk,
            readers,
            path,
            owner,
            after,
            owners,
            durability,
            call_ends,
            late,
            pass: Arc::default(),
        })
    }

    /// This server process, as the records name it.
    pub fn server(&self) -> &str {
        &self.owner
    }

    /// Writes down that an execution is about to run, before anything of it runs.
    pub async fn begin(&self, begin: Begin<'_>) -> Result<(), StoreError> {
        self.check_room().await?;
        let begun = Begun::new(&begin);
        let begun = match begun.text_bytes() > AT_ONCE_BYTES {
            // To look for secrets in a long text takes longer than an event loop has.
            true => tokio::task::spawn_blocking(move || begun.masked())
                .await
                .map_err(|err| StoreError::write(&self.path, Arc::new(err)))?,
            false => begun.masked(),
        };
        let owner = Arc::clone(&self.owner);
        self.write(begun.text_bytes(), move |conn| begun.insert(conn, &owner)).await
    }

    /// Writes down that a tool call of `id` is about to go out, before it does. Calls are numbered
    /// by the caller.
    pub async fn begin_call(
        &self,
        id: &ExecutionId,
        number: u32,
        call: &ToolCall<'_>,
    ) -> Result<(), StoreError> {
        let begun = calls::Begun::new(id, number, call);
        let is_running = self.write(begun.text_bytes(), move |conn| begun.insert(conn)).await?;
        if is_running { Ok(()) } else { Err(StoreError::NotRunning(id.clone())) }
    }

    /// Notes how a tool call of `id` ended. Written with the end of its execution at the latest.
    pub async fn finish_call(&self, id: &ExecutionId, number: u32, end: CallEnd<'_>) {
        if !self.call_ends.push(id, calls::Ended::new(number, &end)) {
            return;
        }
        let (execution, ends) = (id.clone(), self.call_ends.take(id));
        let written = self.queue(move |conn| {
            atomically(conn, || ends.iter().try_for_each(|end| end.update(conn, &execution)))
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "how tool calls of {id} ended cannot be written");
        }
    }

    /// Writes down how `id` ended. Only the first time: a second end changes nothing and is
    /// an error. What cannot be written now is an error too, and is written when it can be.
    pub async fn finish(&self, id: &ExecutionId, finish: Finish<'_>) -> Result<(), StoreError> {
        let finished = Finished::new(id, &finish);
        let long = finish.output.text().len() + finish.value.map_or(0, str::len);
        let finished = match long > AT_ONCE_BYTES {
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
        let end = Arc::new(End { finished, calls });
        let its = Arc::clone(&end);
        let was_running = match self.write(text_bytes, move |conn| its.update(conn)).await {
            Ok(was_running) => was_running,
            Err(error) => {
                self.late.push(end);
                self.clerk.try_again();
                return Err(error);
            }
        };
        self.clerk.entry();
        if was_running { Ok(()) } else { Err(StoreError::NotRunning(id.clone())) }
    }

    pub async fn search(&self, query: &LogQuery) -> Result<LogPage, StoreError> {
        if query.text.is_some() {
            let indexed = self.clerk.index().await;
            indexed.map_err(|cause| StoreError::read(&index::path(&self.path), cause))?;
        }
        let (query, index) = (query.clone(), index::path(&self.path));
        let own = OwnRows { owner: Arc::clone(&self.owner), after: self.after };
        self.read(move |conn| search::search(conn, &index, &query, &own)).await
    }

    pub async fn get(&self, id: &ExecutionId) -> Result<Option<Execution>, StoreError> {
        let id = id.clone();
        self.read(move |conn| read::get(conn, &id)).await
    }

    /// The same, if this server ran it for this principal.
    pub async fn get_of(
        &self,
        id: &ExecutionId,
        principal: &Principal,
    ) -> Result<Option<Execution>, StoreError> {
        let (id, principal, owner) = (id.clone(), principal.clone(), Arc::clone(&self.owner));
        self.read(move |conn| read::get_of(conn, &id, &owner, principal.as_str())).await
    }

    /// The newest executions, without their texts; 1,000 at most.
    pub async fn recent(&self, limit: u32) -> Result<Vec<Summary>, StoreError> {
        self.read(move |conn| read::recent(conn, limit.min(RECENT_MAX))).await
    }

    pub async fn counts(&self) -> Result<Counts, StoreError> {
        self.read(|conn| read::counts(conn)).await
    }

    /// Ends the executions whose server died while they ran, as `failed` with the code
    /// `interrupted`; says how many. Those of servers that live are left alone.
    pub async fn interrupt_leftovers(&self, now: SystemTime) -> Result<u64, StoreError> {
        let owners = self.owners.clone();
        let changed = self.queue(move |conn| {
            let changed = atomically(conn, || {
                let changed = read::interrupt(conn, &owners, now)?;
                crate::sessions::end_of_the_dead(conn, &owners, now)?;
                Ok(changed)
            })?;
            owners.tidy();
            Ok(changed)
        });
        let changed = changed.await.map_err(|cause| StoreError::write(&self.path, cause))?;
        self.clerk.take_over();
        Ok(changed)
    }

    /// Removes what has been kept long enough, and the oldest where all of it takes too much room;
    /// a bounded part of it at a time. To be called every hour or so.
    pub async fn retain(
        &self,
        retention: &Retention,
        now: SystemTime,
    ) -> Result<Removed, StoreError> {
        let (retention, pass) = (retention.clone(), Arc::clone(&self.pass));
        let (database, path) = (Arc::clone(&self.database), Arc::clone(&self.path));
        let done = tokio::task::spawn_blocking(move || pass.run(&retention, now, &database, &path));
        let done = done.await.map_err(|err| StoreError::write(&self.path, Arc::new(err)))?;
        done.map_err(|err| StoreError::write(&self.path, Arc::new(err)))
    }

    /// Until everything that was written here stands in the log files, too. What fails is tried
    /// again, and left to the next server in the end.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let written = self.clerk.log().await;
        written.map_err(|cause| StoreError::write(&self.path.with_file_name("logs"), cause))
    }

    /// Nothing is begun that may not be finished.
    async fn check_room(&self) -> Result<(), StoreError> {
        if !self.late.is_empty() {
            // Why that fails does not matter as long as nothing waits afterwards.
            let _ = self.clerk.log().await;
        }
        let room = Room::at(&self.path);
        if room.is_some_and(Room::is_short) || !self.late.is_empty() {
            return Err(StoreError::full(&self.path, room));
        }
        Ok(())
    }

    /// One statement, at once if it is short and nothing is in the way.
    async fn write<T: Send + 'static>(
        &self,
        text_bytes: usize,
        work: impl Fn(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        // Who comes later does not overtake who waits.
        let is_free = self.durability == Durability::Process
            && self.jobs.capacity() == writer::QUEUE
            && text_bytes <= AT_ONCE_BYTES;
        let done = if is_free { self.database.at_once(&work) } else { None };
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
