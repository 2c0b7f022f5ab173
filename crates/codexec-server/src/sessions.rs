//! The open sessions. A session keeps its worker between executions.
//!
//! A session runs one execution at a time, in the order of the requests, and is isolated from other
//! sessions. Only its opener can use it. Sessions that code opened end with that code.

mod access;
mod ended;
mod recording;
mod session;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use codexec_exec::Run;
use codexec_functions::defaults::SESSION_IDLE_MIN;
use codexec_store::ReadScope;
use codexec_types::{FileChanges, Grant, Language, SessionId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) use self::access::Opener;
use self::ended::EndedSessions;
pub use self::recording::RecordedCell;
pub(crate) use self::recording::{MAX_RECORD_BYTES, Replay};
pub(crate) use self::session::SessionLease;
pub use self::session::{OpenSession, SessionInfo};
use crate::escaped_text::escape_name;
use crate::outer_execution::SessionScope;
use crate::{Client, Records};

/// The reason for the end of a session whose opening code has ended.
const OPENER_ENDED: &str = "opener_ended";

#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// Maximum number of open sessions.
    pub max: usize,
    /// Maximum number of open sessions that code has opened.
    pub max_by_code: usize,
    /// Idle timeout.
    pub idle: Duration,
}

impl Default for SessionSettings {
    fn default() -> SessionSettings {
        let idle = Duration::from_secs(SESSION_IDLE_MIN * 60);
        SessionSettings { max: 5, max_by_code: 3, idle }
    }
}

/// The table of open sessions. Cheap to clone.
#[derive(Clone)]
pub struct OpenSessions(Arc<SessionTable>);

struct SessionTable {
    settings: SessionSettings,
    records: Arc<Records>,
    permits: Arc<Semaphore>,
    code_permits: Arc<Semaphore>,
    open: Mutex<HashMap<SessionId, Arc<OpenSession>>>,
    ended: Mutex<EndedSessions>,
}

/// The data of a session before it has a worker.
pub(crate) struct NewSession {
    pub(crate) id: SessionId,
    pub(crate) opener: Opener,
    pub(crate) language: Language,
    pub(crate) name: Option<String>,
    /// The user's directory that it works in.
    pub(crate) working_dir: Option<PathBuf>,
    /// Why the opener's earlier session with this name ended, if there was one.
    pub(crate) replaces: Option<String>,
    /// The folder of its own packages.
    pub(crate) folder: PathBuf,
    pub(crate) permit: SessionPermit,
}

/// The right to open one session.
pub(crate) struct SessionPermit {
    _permit: OwnedSemaphorePermit,
    /// Set for a session that ends with the code that opened it.
    _code_permit: Option<OwnedSemaphorePermit>,
}

/// The totals of a closed session.
#[derive(Clone, Debug)]
pub struct ClosedSession {
    pub duration: Duration,
    pub executions: u32,
    /// Changes of the session's directory after the last reply.
    pub changes: FileChanges,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(
        "session_id: {0:?} is not an open session of yours; list_sessions lists them, \
         start_session opens one"
    )]
    Unknown(String),
    #[error(
        "session_id: {0:?} is not an open session that this code opened, and code may use no others; {how}",
        how = Grant::AllSessions.describe_how_to_grant()
    )]
    NotOwn(String),
    #[error("session_id: {id} has ended ({reason}); start_session opens a new one")]
    Ended { id: SessionId, reason: String },
    #[error(
        "session: {name:?} has ended ({reason}), and its variables and current directory are gone; \
         the code was not run; send it again to open a new session with this name"
    )]
    EndedUnseen { name: String, reason: String },
    #[error(
        "working_dir: {id} {dir}, and a session keeps its directory; leave `working_dir` out, or \
         open another session",
        dir = describe_dir(.dir.as_deref())
    )]
    OtherDir { id: SessionId, dir: Option<PathBuf> },
    #[error(
        "{max} sessions are open, and no more are allowed; close one with close_session, or raise \
         `sessions.max` in config.toml"
    )]
    Full { max: usize },
    #[error(
        "{max} sessions that code opened are open, and no more are allowed; close one with \
         sessions.close, or raise `sessions.max-by-code` in config.toml"
    )]
    FullOfCodes { max: usize },
    #[error("session_id: {max} executions are already waiting for {id}; wait until some are done")]
    Busy { id: SessionId, max: usize },
    #[error(
        "session_id: {0} is waiting for this code to end, so the code cannot run anything in it; \
         use another session"
    )]
    Itself(SessionId),
    #[error("session_id: cancelled while waiting for {0}")]
    Cancelled(SessionId),
}

impl SessionError {
    /// Returns a stable code for clients and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            SessionError::Unknown(_) | SessionError::NotOwn(_) => "SESSION_NOT_FOUND",
            SessionError::Ended { .. } | SessionError::EndedUnseen { .. } => "SESSION_ENDED",
            SessionError::OtherDir { .. } => "INVALID_ARGS",
            SessionError::Full { .. } | SessionError::FullOfCodes { .. } => "TOO_MANY_SESSIONS",
            SessionError::Busy { .. } | SessionError::Itself(_) => "SESSION_BUSY",
            SessionError::Cancelled(_) => "CANCELLED",
        }
    }
}

impl OpenSessions {
    pub fn new(settings: SessionSettings, records: Arc<Records>) -> OpenSessions {
        OpenSessions(Arc::new(SessionTable {
            settings,
            records,
            permits: Arc::new(Semaphore::new(settings.max)),
            code_permits: Arc::new(Semaphore::new(settings.max_by_code)),
            open: Mutex::default(),
            ended: Mutex::default(),
        }))
    }

    /// Takes a permit to open a session.
    ///
    /// THREAT[OWN-2]: sessions of code have a limit of their own, so that some are left for the
    /// user.
    pub(crate) fn reserve(&self, opener: &Opener) -> Result<SessionPermit, SessionError> {
        let SessionSettings { max, max_by_code, .. } = self.0.settings;
        let take = |permits: &Arc<Semaphore>| Arc::clone(permits).try_acquire_owned();
        let code_permit = match opener.is_client_owned() {
            true => None,
            false => Some(
                take(&self.0.code_permits)
                    .map_err(|_| SessionError::FullOfCodes { max: max_by_code })?,
            ),
        };
        let permit = take(&self.0.permits).map_err(|_| SessionError::Full { max })?;
        Ok(SessionPermit { _permit: permit, _code_permit: code_permit })
    }

    /// Adds a session to the table. From here on it can be found, and ends when it is idle.
    pub(crate) fn add(&self, new_session: NewSession, run: Run) -> Arc<OpenSession> {
        let session = Arc::new(OpenSession::new(new_session, run));
        lock(&self.0.open).insert(session.id.clone(), Arc::clone(&session));
        let watcher =
            end_when_due(Arc::downgrade(&self.0), Arc::clone(&session), self.0.settings.idle);
        tokio::spawn(watcher);
        session
    }

    /// Finds an open session by its id, or by its name if it has one.
    pub(crate) fn find(
        &self,
        handle: &str,
        client: &Client,
    ) -> Result<Arc<OpenSession>, SessionError> {
        if let Some(found) = self.find_open(handle, client) {
            return Ok(found);
        }
        // A session of somebody else gets the same answer as one that never existed.
        match lock(&self.0.ended).find(handle, client) {
            Some(ended) => Err(ended),
            None => {
                let handle = handle.chars().take(80).collect();
                Err(match client.may(Grant::AllSessions) {
                    true => SessionError::Unknown(handle),
                    false => SessionError::NotOwn(handle),
                })
            }
        }
    }

    /// Returns the open session with this id or name.
    pub(crate) fn find_open(&self, handle: &str, client: &Client) -> Option<Arc<OpenSession>> {
        let open = lock(&self.0.open);
        let named = match SessionId::parse(handle) {
            Some(id) => open.get(&id).filter(|session| session.is_accessible_to(client)),
            None => {
                let fitting = open.values().filter_map(|session| {
                    session.name_rank(handle, client).map(|rank| (rank, session))
                });
                fitting.min_by_key(|(rank, _)| *rank).map(|(_, session)| session)
            }
        };
        named.cloned()
    }

    /// Checks that a session with this name may be opened by a request that runs code in it. Returns
    /// why the client's last one with this name ended, if there was one.
    pub(crate) fn check_new_name(
        &self,
        name: &str,
        client: &Client,
    ) -> Result<Option<String>, SessionError> {
        lock(&self.0.ended).check_name(name, client)
    }

    /// Lists the sessions that this client, or its code, may use; the oldest first.
    pub(crate) fn list(&self, client: &Client) -> Vec<SessionInfo> {
        let open: Vec<Arc<OpenSession>> = lock(&self.0.open).values().cloned().collect();
        let mut list: Vec<SessionInfo> = open
            .iter()
            .filter(|session| session.is_accessible_to(client))
            .map(|session| session.info())
            .collect();
        list.sort_by_key(|info| info.started);
        list
    }

    /// Lists the open sessions of the identities that the scope includes; the oldest first.
    pub fn list_in(&self, scope: &ReadScope) -> Vec<SessionInfo> {
        let open = lock(&self.0.open);
        let included = open.values().filter(|one| scope.includes(one.opener.identity()));
        let mut list: Vec<SessionInfo> = included.map(|session| session.info()).collect();
        list.sort_by_key(|info| info.started);
        list
    }

    /// Ends an open session of an identity that the scope includes. Returns `None` if there is
    /// none with this id.
    pub async fn end_in(&self, id: &SessionId, scope: &ReadScope) -> Option<ClosedSession> {
        let found = lock(&self.0.open).get(id).cloned();
        let session = found.filter(|session| scope.includes(session.opener.identity()))?;
        self.end(&session, "manual").await
    }

    /// Returns the number of open sessions of all clients.
    pub fn count(&self) -> usize {
        lock(&self.0.open).len()
    }

    /// Ends a session and the execution that runs in it. Returns `None` if it has ended already.
    pub(crate) async fn end(
        &self,
        session: &Arc<OpenSession>,
        reason: &'static str,
    ) -> Option<ClosedSession> {
        self.0.end(session, reason).await
    }

    /// Tells the sessions of this scope to stop their executions, without waiting for them.
    pub(crate) fn close_opened_by(&self, scope: &SessionScope) {
        for session in self.0.opened_by(scope) {
            session.closing().cancel();
        }
    }

    /// Ends the sessions of this scope, and returns what they wrote after their last replies.
    ///
    /// THREAT[OWN-2]: sessions that code opened end with the code.
    pub(crate) async fn end_opened_by(&self, scope: &SessionScope) -> FileChanges {
        self.0.end_opened_by(scope).await
    }

    pub(crate) async fn end_all(&self, reason: &'static str) {
        let open: Vec<Arc<OpenSession>> = lock(&self.0.open).values().cloned().collect();
        futures::future::join_all(open.iter().map(|session| self.0.end(session, reason))).await;
    }
}

impl SessionTable {
    async fn end(&self, session: &Arc<OpenSession>, reason: &'static str) -> Option<ClosedSession> {
        let reason = {
            // Both under one lock, so that no request finds the session neither open nor ended.
            let mut open = lock(&self.open);
            open.remove(&session.id)?;
            let reason = session.end_reason().unwrap_or(reason);
            lock(&self.ended).push(session, reason);
            reason
        };
        let mut closed = session.close(reason).await;
        if !closed.changes.is_empty() {
            let changes = &closed.changes;
            tracing::info!(session = %session.id, ?changes, "written after the last reply");
        }
        let ended = async {
            let store = self.records.store().await?;
            store.end_session(&session.id, reason, SystemTime::now(), closed.executions).await
        };
        if let Err(error) = ended.await {
            tracing::error!(%error, session = %session.id, "the end of a session was not recorded");
        }
        let nested = self.end_opened_by(&SessionScope::Session(session.id.clone())).await;
        closed.changes.nested = (!nested.is_empty()).then(|| Box::new(nested));
        Some(closed)
    }

    fn opened_by(&self, scope: &SessionScope) -> Vec<Arc<OpenSession>> {
        let open = lock(&self.open);
        open.values().filter(|session| session.opener.ends_with(scope)).cloned().collect()
    }

    /// Boxed because it recurses: code in these sessions may have opened others.
    fn end_opened_by<'a>(
        &'a self,
        scope: &'a SessionScope,
    ) -> Pin<Box<dyn Future<Output = FileChanges> + Send + 'a>> {
        let opened = self.opened_by(scope);
        Box::pin(async move {
            let ends = opened.iter().map(|session| self.end(session, OPENER_ENDED));
            let ended = futures::future::join_all(ends).await;
            let mut changes = FileChanges::default();
            for (session, closed) in opened.iter().zip(ended) {
                if let Some(closed) = closed {
                    changes.append_nested(session.working_dir.as_deref(), &closed.changes);
                }
            }
            changes
        })
    }
}

fn describe_dir(dir: Option<&Path>) -> String {
    match dir {
        Some(dir) => format!("works in \"{}\"", escape_name(&dir.to_string_lossy())),
        None => "was opened without a directory".to_owned(),
    }
}

/// Ends a session that is idle or whose worker has ended. Returns when the session is closed.
async fn end_when_due(table: Weak<SessionTable>, session: Arc<OpenSession>, idle: Duration) {
    let reason = tokio::select! {
        () = session.closing().cancelled() => return,
        reason = session.wait_until_due(idle) => reason,
    };
    if let Some(table) = table.upgrade() {
        table.end(&session, reason).await;
    }
}

/// Ignores poisoning: no operation under these locks can be left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
