use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use codexec_exec::{Run, SessionEnd};
use codexec_types::{Identity, Language, SessionId};
use tokio::sync::{Notify, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::ended::EndReport;
use super::recording::{RecordedCell, Recording};
use super::{ClosedSession, NewSession, Opener, SessionError, SessionPermit, lock};
use crate::Client;

/// Maximum number of executions that wait for a session.
const MAX_WAITING: usize = 64;

/// An open session: its worker, and who may use it.
pub struct OpenSession {
    pub id: SessionId,
    pub language: Language,
    pub name: Option<String>,
    pub started: SystemTime,
    /// The host's pid of the worker's first process.
    pub pid: Option<i32>,
    /// The user's directory that it works in.
    pub(crate) working_dir: Option<PathBuf>,
    /// Why the opener's earlier session with this name ended, if there was one.
    replaces: Option<String>,
    /// The folder of its own packages.
    pub(crate) folder: PathBuf,
    pub(super) opener: Opener,
    pub(super) end_report: EndReport,
    begun: Instant,
    run: Arc<tokio::sync::Mutex<Run>>,
    queue: Arc<Semaphore>,
    /// Tells the idle watcher to release the worker.
    requested: Notify,
    state: Mutex<SessionActivity>,
    closing: CancellationToken,
    _permit: SessionPermit,
}

struct SessionActivity {
    last_used: (Instant, SystemTime),
    executions: u32,
    memory_bytes: u64,
    packages: Vec<String>,
    recording: Recording,
    /// The reason why the session has ended, as soon as that is known.
    over: Option<&'static str>,
}

/// The information about a session in a list.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    pub id: SessionId,
    pub identity: Identity,
    pub language: Language,
    pub name: Option<String>,
    pub started: SystemTime,
    pub last_used: SystemTime,
    pub executions: u32,
    pub pid: Option<i32>,
    pub memory_bytes: u64,
    pub packages: Vec<String>,
}

/// Exclusive use of a session's worker for one execution.
pub(crate) struct SessionLease {
    pub(crate) session: Arc<OpenSession>,
    pub(crate) run: OwnedMutexGuard<Run>,
    /// The number of the execution in the session, from 1 on.
    pub(crate) number: u32,
    is_done: bool,
    _permit: OwnedSemaphorePermit,
}

impl OpenSession {
    pub(super) fn new(new_session: NewSession, run: Run) -> OpenSession {
        let NewSession { id, opener, language, name, working_dir, replaces, folder, permit } =
            new_session;
        let now = (Instant::now(), SystemTime::now());
        OpenSession {
            id,
            language,
            name,
            started: now.1,
            pid: run.pid(),
            working_dir,
            replaces,
            folder,
            opener,
            end_report: EndReport::default(),
            begun: now.0,
            state: Mutex::new(SessionActivity {
                last_used: now,
                executions: 0,
                memory_bytes: run.memory_bytes(),
                packages: Vec::new(),
                recording: Recording::default(),
                over: None,
            }),
            run: Arc::new(tokio::sync::Mutex::new(run)),
            queue: Arc::new(Semaphore::new(MAX_WAITING)),
            requested: Notify::new(),
            closing: CancellationToken::new(),
            _permit: permit,
        }
    }

    /// Waits for the worker, first come, first served.
    pub(crate) async fn lease(
        self: &Arc<OpenSession>,
        cancel: &CancellationToken,
    ) -> Result<SessionLease, SessionError> {
        let busy = |_| SessionError::Busy { id: self.id.clone(), max: MAX_WAITING };
        let permit = Arc::clone(&self.queue).try_acquire_owned().map_err(busy)?;
        self.requested.notify_one();
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
        Ok(SessionLease { session, run, number, is_done: false, _permit: permit })
    }

    /// Notes that this client is told of the session's end, unless it no longer waits for an answer.
    pub(crate) fn note_end_reported(&self, client: &Client) {
        if self.opener.is_same_as(client) && !client.cancel.is_cancelled() {
            self.end_report.set();
        }
    }

    /// True if the opener has been told that the session has ended.
    pub(crate) fn is_end_reported(&self) -> bool {
        self.end_report.is_set()
    }

    /// Returns the reason if the worker has ended before the session was closed.
    pub(super) fn end_reason(&self) -> Option<&'static str> {
        lock(&self.state).over
    }

    pub(crate) fn ended_error(&self, over: SessionEnd) -> SessionError {
        SessionError::Ended { id: self.id.clone(), reason: reason_name(over).to_owned() }
    }

    pub(crate) fn info(&self) -> SessionInfo {
        let state = lock(&self.state);
        SessionInfo {
            id: self.id.clone(),
            identity: self.opener.identity().clone(),
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

    /// Returns the cells that succeeded, for replay in another session.
    pub(crate) fn recorded_cells(&self) -> Result<Vec<Arc<RecordedCell>>, crate::SnapshotError> {
        lock(&self.state).recording.cells()
    }

    pub(crate) fn note_package(&self, name: &str) {
        let mut state = lock(&self.state);
        if !state.packages.iter().any(|other| other == name) {
            state.packages.push(name.to_owned());
        }
    }

    /// Returns a token that is cancelled when the session ends, to stop its execution.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Waits until the session should end, because it is idle or its worker has ended, and returns
    /// the reason. Releases the worker to executions meanwhile.
    #[expect(clippy::await_holding_invalid_type, reason = "the lock is the use of the worker")]
    pub(super) async fn wait_until_due(&self, idle: Duration) -> &'static str {
        loop {
            let mut run = self.run.lock().await;
            // The reply to the last execution is written first.
            tokio::task::yield_now().await;
            let until = {
                let mut state = lock(&self.state);
                state.memory_bytes = run.memory_bytes();
                state.last_used.0 + idle
            };
            tokio::select! {
                biased;
                () = self.requested.notified() => {}
                over = run.watch_idle() => return reason_name(over),
                () = tokio::time::sleep_until(until.into()) => return "idle_timeout",
            }
        }
    }

    /// Stops the execution, and waits until all processes have ended.
    #[expect(clippy::await_holding_invalid_type, reason = "the lock is the use of the worker")]
    pub(super) async fn close(&self, reason: &'static str) -> ClosedSession {
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
            tracing::warn!(%error, session = %self.id, "the session's packages cannot be removed");
        }
        ClosedSession { duration: self.begun.elapsed(), executions, changes }
    }
}

impl SessionLease {
    /// For the first execution: returns why the opener's earlier session with this name ended.
    pub(crate) fn replaces(&self) -> Option<String> {
        self.session.replaces.clone().filter(|_| self.number == 1)
    }

    /// Updates the session after an execution. Returns the reason if the session has ended.
    pub(crate) fn finish(mut self, cell: Option<RecordedCell>) -> Option<&'static str> {
        self.is_done = true;
        let SessionLease { session, run, .. } = &self;
        let mut state = lock(&session.state);
        state.last_used = (Instant::now(), SystemTime::now());
        if let Some(cell) = cell {
            state.recording.push(cell);
        }
        let over = run.session_end().map(reason_name);
        // A session that is being closed already has its reason.
        if !session.closing.is_cancelled() {
            state.over = over;
        }
        over
    }
}

impl Drop for SessionLease {
    /// Kills a cell whose end was not observed, and its session with it.
    fn drop(&mut self) {
        if !self.is_done {
            self.run.kill();
        }
    }
}

/// Returns the word for records and replies.
fn reason_name(over: SessionEnd) -> &'static str {
    match over {
        SessionEnd::Exited => "process_exit",
        SessionEnd::Closed => "manual",
        over @ (SessionEnd::Stopped(_) | SessionEnd::Cancelled | SessionEnd::BadFrame) => {
            over.code()
        }
    }
}
