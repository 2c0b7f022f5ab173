//! The thread behind the requests: it writes log files and fills the search index.

use std::{
    io,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::{
    database::Database, error::Cause, index::Index, journal::Journal, late::Late, readers,
};

/// How long it lets entries gather, unless somebody waits.
const GATHER: Duration = Duration::from_millis(50);

/// How long it waits before it tries again what failed.
const AGAIN: Duration = Duration::from_secs(1);

/// After so many ends the index is filled, also when nobody searches.
const UNREAD: u32 = 256;

type Done = oneshot::Sender<Result<(), Cause>>;

/// What is to be done.
#[derive(Debug, Default)]
struct Desk {
    /// How many entries came since the log files were last written.
    entries: u32,
    unread: u32,
    take_over: bool,
    logs: Vec<Done>,
    index: Vec<Done>,
    is_again: bool,
    is_closed: bool,
}

/// The thread's other end. It ends when this is dropped, after it has written what it knows.
#[derive(Debug)]
pub(crate) struct Clerk(Arc<(Mutex<Desk>, Condvar)>);

#[derive(Debug, thiserror::Error)]
#[error("the thread that writes log files has ended")]
struct Gone;

impl Clerk {
    pub(crate) fn start(
        path: Arc<Path>,
        database: Arc<Database>,
        journal: Journal,
        late: Arc<Late>,
    ) -> io::Result<Clerk> {
        let desk: Arc<(Mutex<Desk>, Condvar)> = Arc::default();
        let clerk = Clerk(Arc::clone(&desk));
        let index = Index::beside(&path);
        let work = Work { path, database, journal, late, index, reader: None };
        let thread = thread::Builder::new().name("codexec-clerk".to_owned());
        thread.spawn(move || work.run(&desk))?;
        Ok(clerk)
    }

    /// There is a new entry for the log files.
    pub(crate) fn entry(&self) {
        let mut desk = self.desk();
        desk.entries += 1;
        desk.unread += 1;
        let is_first = desk.entries == 1;
        drop(desk);
        if is_first {
            self.0.1.notify_one();
        }
    }

    /// Something could not be written; it is to be tried until it can.
    pub(crate) fn try_again(&self) {
        self.desk().is_again = true;
        self.0.1.notify_one();
    }

    /// Servers died; what they left is to be written.
    pub(crate) fn take_over(&self) {
        self.desk().take_over = true;
        self.0.1.notify_one();
    }

    /// Until everything so far is in the log files.
    pub(crate) async fn log(&self) -> Result<(), Cause> {
        self.wait(|desk, done| desk.logs.push(done)).await
    }

    /// Until everything so far can be found by its words.
    pub(crate) async fn index(&self) -> Result<(), Cause> {
        self.wait(|desk, done| desk.index.push(done)).await
    }

    async fn wait(&self, ask: impl FnOnce(&mut Desk, Done)) -> Result<(), Cause> {
        let (sender, receiver) = oneshot::channel();
        ask(&mut self.desk(), sender);
        self.0.1.notify_one();
        receiver.await.unwrap_or_else(|_| Err(Arc::new(Gone)))
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Clerk {
    fn drop(&mut self) {
        self.desk().is_closed = true;
        self.0.1.notify_one();
    }
}

impl Desk {
    fn is_to_log(&self) -> bool {
        self.entries > 0 || self.take_over || self.is_again || !self.logs.is_empty()
    }

    fn is_urgent(&self) -> bool {
        self.is_closed || !self.logs.is_empty() || !self.index.is_empty()
    }
}

/// What the thread works with.
struct Work {
    path: Arc<Path>,
    database: Arc<Database>,
    journal: Journal,
    late: Arc<Late>,
    index: Index,
    reader: Option<Connection>,
}

impl Work {
    fn run(mut self, desk: &(Mutex<Desk>, Condvar)) {
        let mut has_failed = false;
        loop {
            let todo = next(desk);
            let logged = if todo.is_to_log() { self.log(todo.take_over) } else { Ok(()) };
            let is_to_index = !todo.index.is_empty() || todo.unread >= UNREAD;
            let indexed = if is_to_index { self.index() } else { Ok(()) };
            for (result, what) in [(&logged, "the log"), (&indexed, "the search index")] {
                if let Err(error) = result
                    && !has_failed
                {
                    tracing::warn!(%error, "{what} cannot be written; it is tried again");
                }
            }
            has_failed = logged.is_err() || indexed.is_err();
            let mut desk = desk.0.lock().unwrap_or_else(PoisonError::into_inner);
            desk.is_again |= logged.is_err();
            desk.take_over |= logged.is_err() && todo.take_over;
            desk.unread += if is_to_index { 0 } else { todo.unread };
            drop(desk);
            todo.logs.into_iter().for_each(|done| drop(done.send(logged.clone())));
            todo.index.into_iter().for_each(|done| drop(done.send(indexed.clone())));
            if todo.is_closed {
                return;
            }
        }
    }

    /// First what could not be written before, for it has entries in the log files, too.
    fn log(&mut self, take_over: bool) -> Result<(), Cause> {
        let late = self.late.write(&self.database).map_err(cause);
        let reader = opened(&mut self.reader, &self.path)?;
        let written = self.journal.write(reader, &self.database, take_over);
        late.and(written.map_err(cause))
    }

    fn index(&mut self) -> Result<(), Cause> {
        let reader = opened(&mut self.reader, &self.path)?;
        self.index.catch_up(reader).map_err(cause)
    }
}

fn opened<'a>(reader: &'a mut Option<Connection>, path: &Path) -> Result<&'a Connection, Cause> {
    let conn = match reader.take() {
        Some(conn) => conn,
        None => readers::open(path).map_err(cause)?,
    };
    Ok(reader.insert(conn))
}

fn cause(err: impl std::error::Error + Send + Sync + 'static) -> Cause {
    Arc::new(err)
}

/// Waits until there is something to do, and a little longer if nobody waits for it.
fn next(desk: &(Mutex<Desk>, Condvar)) -> Desk {
    let (state, changed) = desk;
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let is_idle = |desk: &mut Desk| {
        desk.entries == 0 && !desk.take_over && !desk.is_again && !desk.is_urgent()
    };
    if state.is_again {
        let waited = changed.wait_timeout_while(state, AGAIN, |desk| !desk.is_urgent());
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    } else {
        state = changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(state, GATHER, |desk| !desk.is_urgent());
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    let todo = std::mem::take(&mut *state);
    state.is_closed = todo.is_closed;
    todo
}
