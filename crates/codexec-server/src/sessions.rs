//! The sessions that are open: workers that are kept between executions.
//!
//! A session does one thing at a time and keeps its callers in order; different sessions know
//! nothing of each other. It belongs to whoever opened it: to others it is not there.

mod recorded;
mod session;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use codexec_exec::Run;
use codexec_types::{Language, Principal, SessionId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::recorded::Recorded;
pub(crate) use self::recorded::{MAX_RECORD_BYTES, Replay};
pub(crate) use self::session::Turn;
pub use self::session::{Session, SessionInfo};
use crate::Records;

/// How many that have ended are remembered, so that who comes back hears why.
const REMEMBERED: usize = 200;

#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// How many may be open at once.
    pub max: usize,
    /// How long one may wait for its next execution.
    pub idle: Duration,
}

impl Default for SessionSettings {
    fn default() -> SessionSettings {
        SessionSettings { max: 5, idle: Duration::from_secs(15 * 60) }
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Sessions(Arc<Table>);

struct Table {
    settings: SessionSettings,
    records: Arc<Records>,
    places: Arc<Semaphore>,
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    ended: Mutex<VecDeque<(SessionId, Principal, String)>>,
}

/// What is known of a session before it has a worker.
pub(crate) struct Opening {
    pub(crate) id: SessionId,
    pub(crate) principal: Principal,
    pub(crate) language: Language,
    pub(crate) name: Option<String>,
    /// Where its own packages are.
    pub(crate) folder: PathBuf,
    pub(crate) place: Place,
}

/// The right to open one.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

/// What a session came to.
#[derive(Clone, Copy, Debug)]
pub struct Closed {
    pub duration: Duration,
    pub executions: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(
        "session_id: {0:?} is no open session of yours; list_sessions shows those there are, \
         start_session opens one"
    )]
    Unknown(String),
    #[error("session_id: {id} has ended ({reason}); start_session opens a new one")]
    Ended { id: SessionId, reason: String },
    #[error(
        "{max} sessions are open, and no more are allowed; close one with close_session, or raise \
         `sessions.max` in config.toml"
    )]
    Full { max: usize },
    #[error("session_id: {max} executions wait for {id} already; wait until some are done")]
    Busy { id: SessionId, max: usize },
    #[error(
        "session_id: {0} waits for the code that asks, so it cannot be asked in turn; use another \
         session"
    )]
    Itself(SessionId),
    #[error("session_id: the wait for {0} was cancelled")]
    Cancelled(SessionId),
}

impl SessionError {
    /// Stable word for clients and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            SessionError::Unknown(_) => "SESSION_NOT_FOUND",
            SessionError::Ended { .. } => "SESSION_ENDED",
            SessionError::Full { .. } => "TOO_MANY_SESSIONS",
            SessionError::Busy { .. } | SessionError::Itself(_) => "SESSION_BUSY",
            SessionError::Cancelled(_) => "CANCELLED",
        }
    }
}

impl Sessions {
    pub fn new(settings: SessionSettings, records: Arc<Records>) -> Sessions {
        Sessions(Arc::new(Table {
            settings,
            records,
            places: Arc::new(Semaphore::new(settings.max)),
            open: Mutex::default(),
            ended: Mutex::default(),
        }))
    }

    pub(crate) fn place(&self) -> Result<Place, SessionError> {
        let full = |_| SessionError::Full { max: self.0.settings.max };
        Arc::clone(&self.0.places)
            .try_acquire_owned()
            .map(|permit| Place { _permit: permit })
            .map_err(full)
    }

    /// From here on it can be found, and ends by itself when nobody uses it.
    pub(crate) fn add(&self, opening: Opening, run: Run) -> Arc<Session> {
        let session = Arc::new(Session::new(opening, run));
        lock(&self.0.open).insert(session.id.clone(), Arc::clone(&session));
        let watched = watch(Arc::downgrade(&self.0), Arc::clone(&session), self.0.settings.idle);
        tokio::spawn(watched);
        session
    }

    /// By its id, or by its name if it has one.
    ///
    /// THREAT[SES-7]: to anybody but its owner it is not there.
    pub(crate) fn find(
        &self,
        handle: &str,
        principal: &Principal,
    ) -> Result<Arc<Session>, SessionError> {
        if let Some(found) = self.named(handle, principal) {
            return Ok(found);
        }
        // Whether it was somebody else's is nobody's business.
        let ended = lock(&self.0.ended);
        let is_it = |(id, owner, _): &&(SessionId, Principal, String)| {
            id.as_str() == handle && owner == principal
        };
        match ended.iter().find(is_it) {
            Some((id, _, reason)) => {
                Err(SessionError::Ended { id: id.clone(), reason: reason.clone() })
            }
            None => Err(SessionError::Unknown(handle.chars().take(80).collect())),
        }
    }

    /// The one with this id or name, if it is open.
    pub(crate) fn named(&self, handle: &str, principal: &Principal) -> Option<Arc<Session>> {
        let open = lock(&self.0.open);
        let of_theirs = |session: &&Arc<Session>| session.principal == *principal;
        match SessionId::parse(handle) {
            Some(id) => open.get(&id).filter(of_theirs).cloned(),
            None => {
                let has_name = |session: &&Arc<Session>| session.name.as_deref() == Some(handle);
                open.values().filter(of_theirs).find(has_name).cloned()
            }
        }
    }

    /// The oldest first.
    pub fn list(&self, principal: &Principal) -> Vec<SessionInfo> {
        let open: Vec<Arc<Session>> = lock(&self.0.open).values().cloned().collect();
        let mut list: Vec<SessionInfo> = open
            .iter()
            .filter(|session| session.principal == *principal)
            .map(|session| session.info())
            .collect();
        list.sort_by_key(|info| info.started);
        list
    }

    /// How many are open, whoever's.
    pub fn count(&self) -> usize {
        lock(&self.0.open).len()
    }

    /// Ends it, and with it what runs there. `None` if somebody else was faster.
    pub(crate) async fn end(&self, session: &Arc<Session>, reason: &'static str) -> Option<Closed> {
        self.0.end(session, reason).await
    }

    pub(crate) async fn end_all(&self, reason: &'static str) {
        let open: Vec<Arc<Session>> = lock(&self.0.open).values().cloned().collect();
        futures::future::join_all(open.iter().map(|session| self.0.end(session, reason))).await;
    }
}

impl Table {
    async fn end(&self, session: &Arc<Session>, reason: &'static str) -> Option<Closed> {
        lock(&self.open).remove(&session.id)?;
        let reason = session.over().unwrap_or(reason);
        {
            let mut ended = lock(&self.ended);
            ended.push_front((session.id.clone(), session.principal.clone(), reason.to_owned()));
            ended.truncate(REMEMBERED);
        }
        let closed = session.close(reason).await;
        let ended = async {
            let store = self.records.store().await?;
            store.session_ended(&session.id, reason, SystemTime::now(), closed.executions).await
        };
        if let Err(error) = ended.await {
            tracing::error!(%error, session = %session.id, "the end of a session is not recorded");
        }
        Some(closed)
    }
}

/// Ends a session that nobody uses, or whose worker has ended by itself. Ends with it.
async fn watch(table: Weak<Table>, session: Arc<Session>, idle: Duration) {
    let reason = tokio::select! {
        () = session.closing().cancelled() => return,
        reason = session.due(idle) => reason,
    };
    if let Some(table) = table.upgrade() {
        table.end(&session, reason).await;
    }
}

/// Nothing under these locks can be left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
