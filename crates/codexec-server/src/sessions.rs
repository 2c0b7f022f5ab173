//! The sessions that are open: workers that are kept between executions.
//!
//! A session does one thing at a time and keeps its callers in order; different sessions know
//! nothing of each other. It belongs to whoever opened it: to others it is not there. Sessions that
//! code opened end with that code.

mod reach;
mod recorded;
mod session;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use codexec_exec::Run;
use codexec_types::{Changes, Grant, Language, SessionId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) use self::reach::Opener;
pub use self::recorded::Recorded;
pub(crate) use self::recorded::{MAX_RECORD_BYTES, Replay};
pub(crate) use self::session::Turn;
pub use self::session::{Session, SessionInfo};
use crate::inside::Scope;
use crate::{Client, Records};

/// Why a session ended that code had opened.
const OPENER_ENDED: &str = "opener_ended";

/// How many that have ended are remembered, so that who comes back hears why.
const REMEMBERED: usize = 200;

#[derive(Clone, Copy, Debug)]
pub struct SessionSettings {
    /// How many may be open at once.
    pub max: usize,
    /// How many of them code may have opened.
    pub max_by_code: usize,
    /// How long one may wait for its next execution.
    pub idle: Duration,
}

impl Default for SessionSettings {
    fn default() -> SessionSettings {
        SessionSettings { max: 5, max_by_code: 3, idle: Duration::from_secs(15 * 60) }
    }
}

/// Cheap to clone.
#[derive(Clone)]
pub struct Sessions(Arc<Table>);

struct Table {
    settings: SessionSettings,
    records: Arc<Records>,
    places: Arc<Semaphore>,
    places_of_code: Arc<Semaphore>,
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    ended: Mutex<VecDeque<(SessionId, Opener, String)>>,
}

/// What is known of a session before it has a worker.
pub(crate) struct Opening {
    pub(crate) id: SessionId,
    pub(crate) opener: Opener,
    pub(crate) language: Language,
    pub(crate) name: Option<String>,
    /// Where its own packages are.
    pub(crate) folder: PathBuf,
    pub(crate) place: Place,
}

/// The right to open one.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
    /// For one that ends with code.
    _of_code: Option<OwnedSemaphorePermit>,
}

/// What a session came to.
#[derive(Clone, Debug)]
pub struct Closed {
    pub duration: Duration,
    pub executions: u32,
    /// What it did to its directory after the last reply.
    pub changes: Changes,
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(
        "session_id: {0:?} is no open session of yours; list_sessions shows those there are, \
         start_session opens one"
    )]
    Unknown(String),
    #[error(
        "session_id: {0:?} is no open session that this code opened, and code uses no others; {how}",
        how = Grant::AllSessions.how_to_give()
    )]
    NotOwn(String),
    #[error("session_id: {id} has ended ({reason}); start_session opens a new one")]
    Ended { id: SessionId, reason: String },
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
            SessionError::Unknown(_) | SessionError::NotOwn(_) => "SESSION_NOT_FOUND",
            SessionError::Ended { .. } => "SESSION_ENDED",
            SessionError::Full { .. } | SessionError::FullOfCodes { .. } => "TOO_MANY_SESSIONS",
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
            places_of_code: Arc::new(Semaphore::new(settings.max_by_code)),
            open: Mutex::default(),
            ended: Mutex::default(),
        }))
    }

    /// THREAT[OWN-2]: code has a number of places of its own, so that it leaves some to its user.
    pub(crate) fn place(&self, opener: &Opener) -> Result<Place, SessionError> {
        let SessionSettings { max, max_by_code, .. } = self.0.settings;
        let take = |places: &Arc<Semaphore>| Arc::clone(places).try_acquire_owned();
        let of_code = match opener.is_clients() {
            true => None,
            false => Some(
                take(&self.0.places_of_code)
                    .map_err(|_| SessionError::FullOfCodes { max: max_by_code })?,
            ),
        };
        let permit = take(&self.0.places).map_err(|_| SessionError::Full { max })?;
        Ok(Place { _permit: permit, _of_code: of_code })
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
    pub(crate) fn find(&self, handle: &str, client: &Client) -> Result<Arc<Session>, SessionError> {
        if let Some(found) = self.named(handle, client) {
            return Ok(found);
        }
        // The same answer for somebody else's session and for one that never was.
        let ended = lock(&self.0.ended);
        let is_it = |(id, opener, _): &&(SessionId, Opener, String)| {
            id.as_str() == handle && opener.is_reached_by(client)
        };
        match ended.iter().find(is_it) {
            Some((id, _, reason)) => {
                Err(SessionError::Ended { id: id.clone(), reason: reason.clone() })
            }
            None => {
                let handle = handle.chars().take(80).collect();
                Err(match client.may(Grant::AllSessions) {
                    true => SessionError::Unknown(handle),
                    false => SessionError::NotOwn(handle),
                })
            }
        }
    }

    /// The one with this id or name, if it is open.
    pub(crate) fn named(&self, handle: &str, client: &Client) -> Option<Arc<Session>> {
        let open = lock(&self.0.open);
        let named = match SessionId::parse(handle) {
            Some(id) => open.get(&id).filter(|session| session.is_reached_by(client)),
            None => {
                let fitting = open.values().filter_map(|session| {
                    session.is_named(handle, client).map(|rank| (rank, session))
                });
                fitting.min_by_key(|(rank, _)| *rank).map(|(_, session)| session)
            }
        };
        named.cloned()
    }

    /// Those that this client, or its code, may use; the oldest first.
    pub(crate) fn list(&self, client: &Client) -> Vec<SessionInfo> {
        let open: Vec<Arc<Session>> = lock(&self.0.open).values().cloned().collect();
        let mut list: Vec<SessionInfo> = open
            .iter()
            .filter(|session| session.is_reached_by(client))
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

    /// Tells the sessions of this scope to stop what runs there, without waiting for it.
    pub(crate) fn close_opened_by(&self, scope: &Scope) {
        for session in self.0.opened_by(scope) {
            session.closing().cancel();
        }
    }

    /// THREAT[OWN-2]: what code opened is gone when the code is.
    pub(crate) async fn end_opened_by(&self, scope: &Scope) {
        self.0.end_opened_by(scope).await;
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
            ended.push_front((session.id.clone(), session.opener.clone(), reason.to_owned()));
            ended.truncate(REMEMBERED);
        }
        let closed = session.close(reason).await;
        if !closed.changes.is_empty() {
            let changes = &closed.changes;
            tracing::info!(session = %session.id, ?changes, "written after the last reply");
        }
        let ended = async {
            let store = self.records.store().await?;
            store.session_ended(&session.id, reason, SystemTime::now(), closed.executions).await
        };
        if let Err(error) = ended.await {
            tracing::error!(%error, session = %session.id, "the end of a session is not recorded");
        }
        self.end_opened_by(&Scope::Session(session.id.clone())).await;
        Some(closed)
    }

    fn opened_by(&self, scope: &Scope) -> Vec<Arc<Session>> {
        let open = lock(&self.open);
        open.values().filter(|session| session.opener.ends_with(scope)).cloned().collect()
    }

    /// Boxed: their code may have opened others.
    fn end_opened_by<'a>(
        &'a self,
        scope: &'a Scope,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        let opened = self.opened_by(scope);
        Box::pin(async move {
            let ends = opened.iter().map(|session| self.end(session, OPENER_ENDED));
            futures::future::join_all(ends).await;
        })
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
