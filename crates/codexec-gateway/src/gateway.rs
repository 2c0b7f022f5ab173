//! The one handle to all upstreams.

mod approval;
mod call;
mod direct;
mod discovery;
mod login;
mod names;
mod resources;
mod rounds;
mod stats;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use codexec_types::{Ask, CallError, Json, Language, ServerName, ToolFilter};
use futures::future::join_all;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinHandle,
    time::Duration,
};

pub use approval::ApproveError;
pub use direct::DirectTool;
pub use discovery::{SearchQuery, SearchReply, ToolInfo};
pub use stats::ServerCost;

use self::resources::{PROMPTS, RESOURCES, TEMPLATES};
use crate::{
    Caller, ServerConfig, Settings,
    bell::Bell,
    catalogue::Catalogue,
    observed::Observed,
    upstream::{CallCounts, Listing, Phase, Shared, State, Upstream},
};

/// Servers that start at the same time.
const STARTS_AT_ONCE: usize = 32;
/// Threads that read lists on disk; more would only wait for each other.
const READERS: usize = 2;
/// Between two starts of servers that nobody waits for.
const BEHIND: Duration = Duration::from_millis(20);
/// What a shutdown may take, however many servers there are.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// The user's servers. Cheap to clone; the servers end with the last clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
    /// On whose behalf this handle calls.
    caller: Caller,
}

struct Inner {
    /// Somebody is starting servers that nobody waits for.
    is_warming: AtomicBool,
    fleet: Mutex<Arc<Fleet>>,
    shared: Shared,
    catalogue: Mutex<Arc<Catalogue>>,
    /// Who makes it.
    making: Semaphore,
    names: Mutex<direct::Names>,
    observed: Arc<Observed>,
}

/// The servers of one moment. Replaced as a whole when the files that name them change.
#[derive(Default)]
pub(crate) struct Fleet {
    /// In the order of the configuration.
    pub(crate) names: Vec<ServerName>,
    /// In the order of `names`.
    pub(crate) upstreams: Vec<Arc<Upstream>>,
}

/// How one server is doing.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ServerHealth {
    pub name: String,
    pub state: ServerState,
    /// As last listed; `None` before the first list.
    pub tools: Option<usize>,
    /// Those that wait for approval, and are not among `tools`.
    pub held: usize,
    /// The list is an old one, kept until the server gives a new one.
    pub stale: bool,
    pub error: Option<String>,
    pub breaker: BreakerState,
    /// Calls are refused for so many seconds from now.
    pub retry_s: Option<u64>,
    pub counts: CallCounts,
    pub pid: Option<u32>,
    /// What was wrong with its list, in sentences.
    pub problems: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Nobody has needed it yet, or it ended and nobody has needed it since.
    Idle,
    Starting,
    Ready,
    Failed,
}

/// Whether calls to a server are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    Closed,
    /// It failed too often in a row.
    Open,
    /// It failed too often, and one call is on its way to see whether that is over.
    Probing,
}

impl BreakerState {
    pub fn name(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::Probing => "probing",
        }
    }
}

impl ServerState {
    pub fn name(self) -> &'static str {
        match self {
            ServerState::Idle => "idle",
            ServerState::Starting => "starting",
            ServerState::Ready => "ready",
            ServerState::Failed => "failed",
        }
    }
}

impl Gateway {
    /// Starts nothing.
    pub fn new(servers: Vec<ServerConfig>, settings: Settings) -> Gateway {
        let observed = Observed::new(settings.home.as_ref());
        let common = Semaphore::new(settings.calls_in_all.min(Semaphore::MAX_PERMITS));
        let inner = Inner {
            is_warming: AtomicBool::new(false),
            fleet: Mutex::default(),
            shared: Shared {
                settings: Arc::new(settings),
                starts: Arc::new(Semaphore::new(STARTS_AT_ONCE)),
                common: Arc::new(common),
                bell: Bell::default(),
            },
            catalogue: Mutex::default(),
            making: Semaphore::new(1),
            names: Mutex::default(),
            observed,
        };
        let gateway = Gateway { inner: Arc::new(inner), caller: Caller::default() };
        drop(gateway.replace(servers));
        gateway
    }

    /// The same servers, called on somebody's behalf.
    #[must_use]
    pub fn on_behalf_of(&self, caller: Caller) -> Gateway {
        Gateway { inner: self.inner.clone(), caller }
    }

    /// Told whenever some list may have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.shared.bell.listen()
    }

    /// Goes on with these servers: those whose entry is the same stay as they are and keep their
    /// connections, new ones start when they are needed, and the others end.
    pub async fn reconfigure(&self, servers: Vec<ServerConfig>) {
        let left = self.replace(servers);
        join_all(left.iter().map(|upstream| upstream.shutdown())).await;
    }

    /// Gives those that are no longer wanted.
    fn replace(&self, servers: Vec<ServerConfig>) -> Vec<Arc<Upstream>> {
        let mut fleet = self.inner.fleet.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = fleet.upstreams.clone();
        let mut upstreams = Vec::new();
        for config in servers {
            let known = before.iter().position(|known| known.config().is_same_server(&config));
            upstreams.push(match known {
                Some(at) => before.swap_remove(at),
                None => Arc::new(Upstream::new(config, self.inner.shared.clone())),
            });
        }
        let names = upstreams.iter().map(|upstream| upstream.name().clone()).collect();
        *fleet = Arc::new(Fleet { names, upstreams });
        self.inner.shared.bell.ring();
        before
    }

    /// Ends a server and starts it anew; `false` if there is none of this name.
    pub async fn restart(&self, name: &str) -> bool {
        let Some(old) = self.renew(name) else { return false };
        old.shutdown().await;
        if let Some(new) = self.fleet().upstreams.iter().find(|up| up.name().as_str() == name) {
            new.begin();
        }
        true
    }

    /// Puts a fresh one in the place of this server, and gives the old one.
    fn renew(&self, name: &str) -> Option<Arc<Upstream>> {
        let mut fleet = self.inner.fleet.lock().unwrap_or_else(PoisonError::into_inner);
        let at = fleet.upstreams.iter().position(|upstream| upstream.name().as_str() == name)?;
        let mut upstreams = fleet.upstreams.clone();
        let place = upstreams.get_mut(at)?;
        let new = Upstream::new(place.config().clone(), self.inner.shared.clone());
        let old = std::mem::replace(place, Arc::new(new));
        *fleet = Arc::new(Fleet { names: fleet.names.clone(), upstreams });
        Some(old)
    }

    /// Starts all servers and waits until each is ready or has failed, at most this long.
    pub async fn settle(&self, limit: Duration) {
        let fleet = self.fleet();
        let all = join_all(fleet.upstreams.iter().map(Upstream::connected));
        // Who is not ready by then is said to be starting.
        let _ = tokio::time::timeout(limit, all).await;
    }

    fn fleet(&self) -> Arc<Fleet> {
        self.inner.fleet.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// In the order of the configuration.
    pub fn server_names(&self) -> Vec<ServerName> {
        self.fleet().names.clone()
    }

    /// Begins to start all servers. Returns at once; needs a tokio runtime around it.
    pub fn warm(&self) {
        for upstream in &self.fleet().upstreams {
            upstream.begin();
        }
    }

    /// Starts servers whose lists are known already, one after the other and behind whatever is
    /// being answered: to start a process takes longer than an answer may.
    fn warm_behind(&self, upstreams: Vec<Arc<Upstream>>) {
        let is_due = |upstream: &Arc<Upstream>| upstream.is_due() && !upstream.shelf().is_enough();
        let due: Vec<Arc<Upstream>> = upstreams.into_iter().filter(is_due).collect();
        if due.is_empty() || self.inner.is_warming.swap(true, Ordering::AcqRel) {
            return;
        }
        // It must not keep the servers alive when nobody else does.
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            for upstream in due {
                tokio::time::sleep(BEHIND).await;
                if inner.strong_count() == 0 {
                    return;
                }
                upstream.begin();
            }
            if let Some(inner) = inner.upgrade() {
                inner.is_warming.store(false, Ordering::Release);
            }
        });
    }

    /// Begins to read the lists on disk and to make them searchable. Returns at once, with what
    /// can be waited for; needs a tokio runtime around it.
    pub fn preload(&self) -> JoinHandle<()> {
        let gateway = self.clone();
        let fleet = self.fleet();
        tokio::spawn(async move {
            let read = |reader: usize| {
                let fleet = Arc::clone(&fleet);
                tokio::task::spawn_blocking(move || {
                    for upstream in fleet.upstreams.iter().skip(reader).step_by(READERS) {
                        upstream.listing();
                    }
                })
            };
            let words = tokio::task::spawn_blocking(crate::search::prepare);
            join_all((0..READERS).map(read)).await;
            gateway.catalogue().await;
            // Whoever searches first makes up for it.
            let _ = words.await;
        })
    }

    /// Whatever a guest asks, told in its language. Dropping the future cancels the call upstream.
    pub async fn answer(
        &self,
        ask: Ask,
        allowed: &ToolFilter,
        language: Language,
    ) -> Result<Json, CallError> {
        let voice = language.into();
        match ask {
            Ask::Tool { server, tool, args } => {
                self.call_tool(&server, &tool, &args, allowed).await
            }
            Ask::Named { name, args } => self.call_named(&name, &args, allowed).await,
            Ask::ToolNames { server } => self.tool_names(&server, allowed).await,
            Ask::Discover { words } => self.discover(&words, allowed).await,
            Ask::Search { query: text, limit, server, kind, detail } => {
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                let query = SearchQuery { text, limit, detail, server, kind };
                self.search_for_guest(&query, allowed, voice).await
            }
            Ask::Schema { name } => {
                let tool = self.schema(&name, allowed, voice).await?;
                self.bounded(&serde_json::to_value(tool).unwrap_or_default())
            }
            Ask::Resources { server } => self.things(RESOURCES, server, allowed).await,
            Ask::ResourceTemplates { server } => self.things(TEMPLATES, server, allowed).await,
            Ask::ReadResource { server, uri } => self.read_resource(&server, &uri, allowed).await,
            Ask::Prompts { server } => self.things(PROMPTS, server, allowed).await,
            Ask::Prompt { server, name, args } => self.prompt(&server, &name, &args, allowed).await,
            Ask::Help { name } => self.help(name.as_deref(), allowed, voice).await,
        }
    }

    pub fn health(&self) -> Vec<ServerHealth> {
        self.fleet().upstreams.iter().map(|upstream| health(upstream)).collect()
    }

    /// Ends all servers at once, within two seconds.
    pub async fn shutdown(&self) {
        let fleet = self.fleet();
        let observed = self.inner.observed.clone();
        let _ = tokio::task::spawn_blocking(move || observed.save()).await;
        let all = join_all(fleet.upstreams.iter().map(|upstream| upstream.shutdown()));
        if tokio::time::timeout(SHUTDOWN, all).await.is_err() {
            fleet.kill();
        }
    }

    fn upstream(&self, name: &ServerName) -> Option<Arc<Upstream>> {
        self.fleet().upstreams.iter().find(|upstream| upstream.name() == name).cloned()
    }

    /// The catalogue of now, made again only when some list has changed.
    async fn catalogue(&self) -> Arc<Catalogue> {
        if let Ok(known) = self.known_catalogue() {
            return known;
        }
        // Whoever comes while it is being made waits for that one.
        let _turn = self.inner.making.acquire().await;
        let (fleet, listings, known) = match self.known_catalogue() {
            Ok(known) => return known,
            Err(outdated) => outdated,
        };
        // Thousands of tools take milliseconds: not on a thread that serves others.
        let made =
            tokio::task::spawn_blocking(move || Catalogue::new(&fleet.names, listings)).await;
        let Ok(made) = made else { return known };
        let made = Arc::new(made);
        *self.inner.catalogue.lock().unwrap_or_else(PoisonError::into_inner) = made.clone();
        made
    }

    /// The catalogue if it is up to date, or what to make it from, and the old one.
    fn known_catalogue(&self) -> Result<Arc<Catalogue>, Outdated> {
        let fleet = self.fleet();
        let listings: Vec<_> = fleet.upstreams.iter().map(|up| up.listing()).collect();
        let known = self.inner.catalogue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_made_from(&listings) { Ok(known) } else { Err((fleet, listings, known)) }
    }
}

type Outdated = (Arc<Fleet>, Vec<Option<Arc<Listing>>>, Arc<Catalogue>);

impl Fleet {
    fn kill(&self) {
        for upstream in &self.upstreams {
            upstream.kill();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.fleet.get_mut().unwrap_or_else(PoisonError::into_inner).kill();
    }
}

fn health(upstream: &Upstream) -> ServerHealth {
    let (state, error, pid) = match upstream.state() {
        State::Idle => (ServerState::Idle, None, None),
        State::Starting => (ServerState::Starting, None, None),
        State::Ready(connection) if connection.is_gone() => (ServerState::Idle, None, None),
        State::Ready(connection) => (ServerState::Ready, None, connection.pid()),
        State::Failed(failure) => (ServerState::Failed, Some(failure.error.to_string()), None),
    };
    let listing = upstream.listing();
    let mut problems: Vec<String> = upstream.shelf().trust().problem().into_iter().collect();
    problems.extend(listing.iter().flat_map(|listing| listing.problems.iter().cloned()));
    let (phase, left) = upstream.phase();
    ServerHealth {
        name: upstream.name().to_string(),
        state,
        tools: listing.as_ref().map(|listing| listing.tools.len()),
        held: listing.as_ref().map_or(0, |listing| listing.held_tools().count()),
        stale: upstream.shelf().is_stale(),
        error,
        breaker: match phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::Probing => BreakerState::Probing,
        },
        retry_s: left
            .map(|left| left.as_nanos().div_ceil(1_000_000_000).try_into().unwrap_or(u64::MAX)),
        counts: upstream.counts(),
        pid,
        problems,
    }
}

#[cfg(test)]
mod tests;
