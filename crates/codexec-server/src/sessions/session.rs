use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use codexec_exec::{Over, Run};
use codexec_types::{Language, SessionId};
use tokio::sync::{Notify, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::recorded::{Recorded, Recording};
use super::{Closed, Opener, Opening, Place, SessionError, lock};

/// How many executions may wait for their turn.
const MAX_WAITING: usize = 64;

/// A worker that is kept, and who may use it.
pub struct Session {
    pub id: SessionId,
    pub language: Language,
    pub name: Option<String>,
    pub started: SystemTime,
    /// Of its first process, on the host.
    pub pid: Option<i32>,
    /// Where its own packages are.
    pub(crate) folder: PathBuf,
    pub(super) opener: Opener,
    begun: Instant,
    run: Arc<tokio::sync::Mutex<Run>>,
    turns: Arc<Semaphore>,
    /// Whoever watches it meanwhile is to let it go.
    wanted: Notify,
    state: Mutex<State>,
    closing: CancellationToken,
    _place: Place,
}

struct State {
    last_used: (Instant, SystemTime),
    executions: u32,
    memory_bytes: u64,
    packages: Vec<String>,
    recording: Recording,
    /// Why it is over, from when that is known.
    over: Option<&'static str>,
}

/// What a list of sessions tells about one.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    pub id: SessionId,
    pub language: Language,
    pub name: Option<String>,
    pub started: SystemTime,
    pub last_used: SystemTime,
    pub executions: u32,
    pub pid: Option<i32>,
    pub memory_bytes: u64,
    pub packages: Vec<String>,
}

/// The use of a session's worker for one execution.
pub(crate) struct Turn {
    pub(crate) session: Arc<Session>,
    pub(crate) run: OwnedMutexGuard<Run>,
    /// Which execution of the session it is, from 1 on.
    pub(crate) number: u32,
    is_done: bool,
    _waited: OwnedSemaphorePermit,
}

impl Session {
    pub(super) fn new(opening: Opening, run: Run) -> Session {
        let Opening { id, opener, language, name, folder, place } = opening;
        let now = (Instant::now(), SystemTime::now());
        Session {
            id,
            language,
            name,
            started: now.1,
            pid: run.pid(),
            folder,
            opener,
            begun: now.0,
            state: Mutex::new(State {
                last_used: now,
                executions: 0,
                memory_bytes: run.memory_bytes(),
                packages: Vec::new(),
                recording: Recording::default(),
                over: None,
            }),
            run: Arc::new(tokio::sync::Mutex::new(run)),
            turns: Arc::new(Semaphore::new(MAX_WAITING)),
            wanted: Notify::new(),
            closing: CancellationToken::new(),
            _place: place,
        }
    }

    /// Waits for its turn, first come, first served.
    pub(crate) async fn turn(
        self: &Arc<Session>,
        cancel: &CancellationToken,
    ) -> Result<Turn, SessionError> {
        let busy = |_| SessionError::Busy { id: self.id.clone(), max: MAX_WAITING };
        let waited = Arc::clone(&self.turns).try_acquire_owned().map_err(busy)?;
        self.wanted.notify_one();
        let run = tokio::select! {
            run = Arc::clone(&self.run).lock_owned() => run,
            () = cancel.cancelled() => return Err(SessionError::Cancelled(self.id.clone())),
        };
        let mut state = lock(&self.state);
        if let Some(reason) = state.over {
            return Err(SessionError::Ended { id: self.id.clone(), reason: reason.to_owned() });
        }
        state.executions += 1;
        state.last_used = (Instant::now(), SystemTime::now());
        let number = state.executions;
        drop(state);
        let session = Arc::clone(self);
        Ok(Turn { session, run, number, is_done: false, _waited: waited })
    }

    /// Why it is over, where its worker has ended before anybody closed it.
    pub(super) fn over(&self) -> Option<&'static str> {
        lock(&self.state).over
    }

    pub(crate) fn ended(&self, over: Over) -> SessionError {
        SessionError::Ended { id: self.id.clone(), reason: reason(over).to_owned() }
    }

    pub(crate) fn info(&self) -> SessionInfo {
        let state = lock(&self.state);
        SessionInfo {
            id: self.id.clone(),
            language: self.language,
            name: self.name.clone(),
            started: self.started,
            last_used: state.last_used.1,
            executions: state.executions,
            pid: self.pid,
            memory_bytes: state.memory_bytes,
            packages: state.packages.clone(),
        }
    }

    /// The cells that succeeded, to be run again elsewhere.
    pub(crate) fn recorded(&self) -> Result<Vec<Arc<Recorded>>, crate::SnapshotError> {
        lock(&self.state).recording.cells()
    }

    pub(crate) fn note_package(&self, name: &str) {
        let mut state = lock(&self.state);
        if !state.packages.iter().any(|other| other == name) {
            state.packages.push(name.to_owned());
        }
    }

    /// Called when it is ended; what runs there is to stop.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Waits until it should end: nobody has used it for so long, or its worker has ended by
    /// itself. Gives way to whoever wants to use it.
    #[expect(clippy::await_holding_invalid_type, reason = "the lock is the use of the worker")]
    pub(super) async fn due(&self, idle: Duration) -> &'static str {
        loop {
            let mut run = self.run.lock().await;
            let until = {
                let mut state = lock(&self.state);
                state.memory_bytes = run.memory_bytes();
                state.last_used.0 + idle
            };
            tokio::select! {
                over = run.idle() => return reason(over),
                () = self.wanted.notified() => {}
                () = tokio::time::sleep_until(until.into()) => return "idle_timeout",
            }
        }
    }

    /// Stops what runs there, and waits until nothing of it is left.
    #[expect(clippy::await_holding_invalid_type, reason = "the lock is the use of the worker")]
    pub(super) async fn close(&self, reason: &'static str) -> Closed {
        self.closing.cancel();
        let mut run = self.run.lock().await;
        let changes = run.close().await;
        let executions = {
            let mut state = lock(&self.state);
            state.over.get_or_insert(reason);
            state.executions
        };
        let folder = self.folder.clone();
        let removed = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(folder)).await;
        if let Ok(Err(error)) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, session = %self.id, "its packages cannot be removed");
        }
        Closed { duration: self.begun.elapsed(), executions, changes }
    }
}

impl Turn {
    /// After an execution: what it was like, and whether it was the last.
    pub(crate) fn done(mut self, cell: Option<Recorded>) -> Option<&'static str> {
        self.is_done = true;
        let Turn { session, run, .. } = &self;
        let mut state = lock(&session.state);
        state.last_used = (Instant::now(), SystemTime::now());
        if let Some(cell) = cell {
            state.recording.push(cell);
        }
        let over = run.is_over().map(reason);
        // One that is being closed has its reason already.
        if !session.closing.is_cancelled() {
            state.over = over;
        }
        over
    }
}

impl Drop for Turn {
    /// A cell whose end nobody saw does not go on: its session ends with it.
    fn drop(&mut self) {
        if !self.is_done {
            self.run.kill();
        }
    }
}

/// The word that records and replies have for it.
fn reason(over: Over) -> &'static str {
    match over {
        Over::Exited => "process_exit",
        Over::Closed => "manual",
        over @ (Over::Stopped(_) | Over::Cancelled | Over::BadFrame) => over.code(),
    }
}
