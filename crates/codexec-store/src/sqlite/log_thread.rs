//! The background thread that writes the log files and updates the search index.

use std::{
    io,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{database::Database, index::SearchIndex, readers, unlogged::UnloggedEntries, write};
use crate::{error::Cause, pending_ends::PendingEnds};

/// How long entries are collected for one write, unless a caller waits.
const BATCH_DELAY: Duration = Duration::from_millis(50);

const RETRY_DELAY: Duration = Duration::from_secs(1);

/// After this many ends the index is updated even without a search.
const UNINDEXED_MAX: u32 = 256;

type Done = oneshot::Sender<Result<(), Cause>>;

/// The thread's pending work.
#[derive(Debug, Default)]
struct PendingWork {
    /// Entries since the last write of the log files.
    entries: u32,
    /// Entries since the last update of the index.
    unindexed: u32,
    /// True if the entries of dead servers are to be written.
    take_over: bool,
    /// Callers that wait for the log files.
    log_waiters: Vec<Done>,
    /// Callers that wait for the index.
    index_waiters: Vec<Done>,
    is_retry: bool,
    is_closed: bool,
}

/// The handle of the thread. When it is dropped, the thread writes all pending entries and ends.
#[derive(Debug)]
pub(crate) struct LogThread(Arc<(Mutex<PendingWork>, Condvar)>);

#[derive(Debug, thiserror::Error)]
#[error("the thread that writes log files has ended")]
struct LogThreadEnded;

impl LogThread {
    pub(crate) fn start(
        path: Arc<Path>,
        database: Arc<Database>,
        unlogged: UnloggedEntries,
        pending_ends: Arc<PendingEnds>,
    ) -> io::Result<LogThread> {
        let pending: Arc<(Mutex<PendingWork>, Condvar)> = Arc::default();
        let handle = LogThread(Arc::clone(&pending));
        let index = SearchIndex::next_to(&path);
        let writer = LogWriter { path, database, unlogged, pending_ends, index, reader: None };
        let thread = thread::Builder::new().name("codexec-journal".to_owned());
        thread.spawn(move || writer.run(&pending))?;
        Ok(handle)
    }

    /// Announces a new entry for the log files.
    pub(crate) fn add_entry(&self) {
        let mut pending = self.pending();
        pending.entries += 1;
        pending.unindexed += 1;
        let is_first = pending.entries == 1;
        drop(pending);
        if is_first {
            self.0.1.notify_one();
        }
    }

    /// Retries what could not be written, until it is.
    pub(crate) fn retry(&self) {
        self.pending().is_retry = true;
        self.0.1.notify_one();
    }

    /// Writes the entries of dead servers.
    pub(crate) fn take_over(&self) {
        self.pending().take_over = true;
        self.0.1.notify_one();
    }

    /// Waits until all entries so far are in the log files.
    pub(crate) async fn flush_logs(&self) -> Result<(), Cause> {
        self.wait(|pending, done| pending.log_waiters.push(done)).await
    }

    /// Waits until all entries so far are in the search index.
    pub(crate) async fn update_index(&self) -> Result<(), Cause> {
        self.wait(|pending, done| pending.index_waiters.push(done)).await
    }

    async fn wait(&self, enqueue: impl FnOnce(&mut PendingWork, Done)) -> Result<(), Cause> {
        let (sender, receiver) = oneshot::channel();
        enqueue(&mut self.pending(), sender);
        self.0.1.notify_one();
        receiver.await.unwrap_or_else(|_| Err(Arc::new(LogThreadEnded)))
    }

    fn pending(&self) -> MutexGuard<'_, PendingWork> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for LogThread {
    fn drop(&mut self) {
        self.pending().is_closed = true;
        self.0.1.notify_one();
    }
}

impl PendingWork {
    fn needs_logging(&self) -> bool {
        self.entries > 0 || self.take_over || self.is_retry || !self.log_waiters.is_empty()
    }

    fn is_urgent(&self) -> bool {
        self.is_closed || !self.log_waiters.is_empty() || !self.index_waiters.is_empty()
    }
}

/// The state of the thread.
struct LogWriter {
    path: Arc<Path>,
    database: Arc<Database>,
    unlogged: UnloggedEntries,
    pending_ends: Arc<PendingEnds>,
    index: SearchIndex,
    reader: Option<Connection>,
}

impl LogWriter {
    fn run(mut self, pending: &(Mutex<PendingWork>, Condvar)) {
        let mut has_failed = false;
        loop {
            let work = wait_for_work(pending);
            let logged = if work.needs_logging() { self.log(work.take_over) } else { Ok(()) };
            let needs_index = !work.index_waiters.is_empty() || work.unindexed >= UNINDEXED_MAX;
            let indexed = if needs_index { self.index() } else { Ok(()) };
            for (result, what) in [(&logged, "log files"), (&indexed, "search index")] {
                if let Err(error) = result
                    && !has_failed
                {
                    tracing::warn!(%error, "cannot write the {what}; retrying");
                }
            }
            has_failed = logged.is_err() || indexed.is_err();
            let mut pending = pending.0.lock().unwrap_or_else(PoisonError::into_inner);
            pending.is_retry |= logged.is_err();
            pending.take_over |= logged.is_err() && work.take_over;
            pending.unindexed += if needs_index { 0 } else { work.unindexed };
            drop(pending);
            work.log_waiters.into_iter().for_each(|done| drop(done.send(logged.clone())));
            work.index_waiters.into_iter().for_each(|done| drop(done.send(indexed.clone())));
            if work.is_closed {
                return;
            }
        }
    }

    /// Writes pending ends first, because they have entries in the log files, too.
    fn log(&mut self, take_over: bool) -> Result<(), Cause> {
        let ends = self.write_pending_ends().map_err(cause);
        let reader = open_reader(&mut self.reader, &self.path)?;
        let written = self.unlogged.write(reader, &self.database, take_over);
        ends.and(written.map_err(cause))
    }

    /// Writes the pending ends in order, until one fails.
    fn write_pending_ends(&self) -> rusqlite::Result<()> {
        while let Some(end) = self.pending_ends.first() {
            let mut open = self.database.lock();
            write::end(&open.conn, &end)?;
            open.checkpointer.count_commit();
            drop(open);
            self.pending_ends.remove_first();
        }
        Ok(())
    }

    fn index(&mut self) -> Result<(), Cause> {
        let reader = open_reader(&mut self.reader, &self.path)?;
        self.index.catch_up(reader).map_err(cause)
    }
}

fn open_reader<'a>(
    reader: &'a mut Option<Connection>,
    path: &Path,
) -> Result<&'a Connection, Cause> {
    let conn = match reader.take() {
        Some(conn) => conn,
        None => readers::open(path).map_err(cause)?,
    };
    Ok(reader.insert(conn))
}

fn cause(err: impl std::error::Error + Send + Sync + 'static) -> Cause {
    Arc::new(err)
}

/// Waits for work, and a little longer for more of it unless a caller waits.
fn wait_for_work(pending: &(Mutex<PendingWork>, Condvar)) -> PendingWork {
    let (state, changed) = pending;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let is_idle = |work: &mut PendingWork| {
        work.entries == 0 && !work.take_over && !work.is_retry && !work.is_urgent()
    };
    if state.is_retry {
        let waited = changed.wait_timeout_while(state, RETRY_DELAY, |work| !work.is_urgent());
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    } else {
        state = changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(state, BATCH_DELAY, |work| !work.is_urgent());
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    let work = std::mem::take(&mut *state);
    state.is_closed = work.is_closed;
    work
}
