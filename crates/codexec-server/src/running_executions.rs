//! The executions that run in this process, and those who watch them.
//!
//! A watcher never slows an execution: its channel is bounded, and it is told how much it missed.

mod pieces;
mod watched;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use codexec_store::{CoarseStatus, ReadScope};
use codexec_types::{
    ExecutionId, ImageType, Language, Limit, Outcome, OutputStream, Principal, SessionId,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc};
use tokio_util::sync::CancellationToken;

pub use self::pieces::last_pieces;
pub(crate) use self::watched::WatchedRun;

/// Maximum number of watchers of one execution.
const MAX_WATCHERS: usize = 32;
/// Maximum number of events that wait for one watcher.
const WAITING_EVENTS: usize = 64;
/// Maximum number of starts and ends that wait for one reader of all executions.
const WAITING_CHANGES: usize = 256;

/// The table of running executions. Cheap to clone.
#[derive(Clone)]
pub struct RunningExecutions {
    running: Arc<Mutex<HashMap<ExecutionId, Entry>>>,
    changes: broadcast::Sender<ExecutionChange>,
}

/// What is known of an execution that runs.
#[derive(Clone, Debug)]
pub struct RunningExecution {
    pub id: ExecutionId,
    pub principal: Principal,
    pub language: Language,
    pub session: Option<SessionId>,
    pub started: SystemTime,
}

/// An event of a running execution.
#[derive(Clone, Debug)]
pub enum ExecutionEvent {
    Started(RunningExecution),
    Output {
        stream: OutputStream,
        text: Arc<str>,
    },
    /// What the code has printed before somebody began to watch; of a long text, the end.
    Earlier(Vec<(OutputStream, String)>),
    Progress(Arc<str>),
    /// A tool call begins.
    Call {
        server: Arc<str>,
        tool: Arc<str>,
    },
    Image(ImageType),
    /// The watcher was too slow, or came too late, for so many events.
    Missed(u64),
}

/// The start or the end of an execution.
#[derive(Clone, Debug)]
pub struct ExecutionChange {
    pub execution: RunningExecution,
    /// `None` at the start.
    pub ended: Option<CoarseStatus>,
}

/// A stream of the events of one execution. It ends when the execution has its record.
pub struct Watch {
    events: mpsc::Receiver<ExecutionEvent>,
    _permit: OwnedSemaphorePermit,
}

#[derive(Debug, PartialEq, Eq)]
pub enum WatchError {
    /// No such execution runs here, as far as the reader may know.
    NotRunning,
    TooManyWatchers,
}

struct Entry {
    about: RunningExecution,
    cancel: CancellationToken,
    joins: mpsc::Sender<mpsc::Sender<ExecutionEvent>>,
    watchers: Arc<Semaphore>,
}

impl Default for RunningExecutions {
    fn default() -> RunningExecutions {
        RunningExecutions {
            running: Arc::default(),
            changes: broadcast::Sender::new(WAITING_CHANGES),
        }
    }
}

impl RunningExecutions {
    /// Lists the executions that the scope includes, the newest first.
    pub fn list(&self, scope: &ReadScope) -> Vec<RunningExecution> {
        let mut list: Vec<RunningExecution> = self
            .lock()
            .values()
            .map(|entry| &entry.about)
            .filter(|about| scope.includes(about.principal.identity()))
            .cloned()
            .collect();
        list.sort_by_key(|about| std::cmp::Reverse(about.started));
        list
    }

    /// Watches an execution from now on. The first event has what it has printed so far.
    pub fn watch(&self, id: &ExecutionId, scope: &ReadScope) -> Result<Watch, WatchError> {
        let running = self.lock();
        let entry = find(&running, id, scope).ok_or(WatchError::NotRunning)?;
        let permit = Arc::clone(&entry.watchers).try_acquire_owned();
        let permit = permit.map_err(|_| WatchError::TooManyWatchers)?;
        let (sender, events) = mpsc::channel(WAITING_EVENTS);
        // There is room for each permit.
        entry.joins.try_send(sender).map_err(|_| WatchError::NotRunning)?;
        Ok(Watch { events, _permit: permit })
    }

    /// Cancels an execution. Returns false if none with this id runs here for the reader.
    pub fn cancel(&self, id: &ExecutionId, scope: &ReadScope) -> bool {
        let running = self.lock();
        let found = find(&running, id, scope);
        if let Some(entry) = found {
            entry.cancel.cancel();
        }
        found.is_some()
    }

    /// Subscribes to the starts and ends of all executions. The reader leaves out what its client
    /// may not see.
    pub fn subscribe(&self) -> broadcast::Receiver<ExecutionChange> {
        self.changes.subscribe()
    }

    /// Adds an execution. It is in the table until the result is dropped.
    pub(crate) fn add(
        &self,
        about: RunningExecution,
        cancel: CancellationToken,
        first: Option<mpsc::Sender<ExecutionEvent>>,
    ) -> WatchedRun {
        let (joins, joining) = mpsc::channel(MAX_WATCHERS);
        let watchers = Arc::new(Semaphore::new(MAX_WATCHERS));
        let entry = Entry { about: about.clone(), cancel, joins, watchers };
        self.lock().insert(about.id.clone(), entry);
        self.tell(&about, None);
        WatchedRun::new(self.clone(), about, joining, first)
    }

    fn remove(&self, about: &RunningExecution, ended: CoarseStatus) {
        self.lock().remove(&about.id);
        self.tell(about, Some(ended));
    }

    fn tell(&self, about: &RunningExecution, ended: Option<CoarseStatus>) {
        if self.changes.receiver_count() > 0 {
            let _ = self.changes.send(ExecutionChange { execution: about.clone(), ended });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, Entry>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// THREAT[HTTP-9]: an execution of somebody else is not found, just as one that does not run.
fn find<'a>(
    running: &'a HashMap<ExecutionId, Entry>,
    id: &ExecutionId,
    scope: &ReadScope,
) -> Option<&'a Entry> {
    running.get(id).filter(|entry| scope.includes(entry.about.principal.identity()))
}

impl Watch {
    /// Returns the next event, or `None` when the execution has ended and is recorded.
    pub async fn next(&mut self) -> Option<ExecutionEvent> {
        self.events.recv().await
    }
}

/// Returns the channel of a client that watches its own execution from the start.
pub fn watch_channel() -> (mpsc::Sender<ExecutionEvent>, mpsc::Receiver<ExecutionEvent>) {
    mpsc::channel(WAITING_EVENTS)
}

/// Returns the status of a finished execution in one word, as its record has it.
pub fn coarse_status(outcome: &Outcome) -> CoarseStatus {
    match outcome {
        Outcome::Returned(_) => CoarseStatus::Success,
        Outcome::Stopped(Limit::Wall) => CoarseStatus::Timeout,
        Outcome::Cancelled => CoarseStatus::Cancelled,
        Outcome::Threw(_) | Outcome::Exited { .. } | Outcome::Stopped(_) | Outcome::Crashed(_) => {
            CoarseStatus::Failed
        }
    }
}

#[cfg(test)]
mod tests;
