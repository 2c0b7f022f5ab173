//! The one handle to all upstreams.

mod call;
mod discovery;

use std::sync::{Arc, Mutex, PoisonError};

use codexec_types::{Ask, CallError, Json, ServerName, ToolFilter};
use futures::future::join_all;
use tokio::{sync::Semaphore, time::Duration};

pub use discovery::{SearchQuery, SearchReply, ToolInfo};

use crate::{
    ServerConfig, Settings,
    catalogue::Catalogue,
    upstream::{CallCounts, Phase, State, Upstream},
};

/// Servers that start at the same time.
const STARTS_AT_ONCE: usize = 32;
/// What a shutdown may take, however many servers there are.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// The user's servers. Cheap to clone; the servers end with the last clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    fleet: Mutex<Arc<Fleet>>,
    settings: Arc<Settings>,
    starts: Arc<Semaphore>,
    /// The calls that all servers together may have under way.
    common: Arc<Semaphore>,
    catalogue: Mutex<Arc<Catalogue>>,
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
        let common = Semaphore::new(settings.calls_in_all.min(Semaphore::MAX_PERMITS));
        let inner = Inner {
            common: Arc::new(common),
            fleet: Mutex::default(),
            settings: Arc::new(settings),
            starts: Arc::new(Semaphore::new(STARTS_AT_ONCE)),
            catalogue: Mutex::default(),
        };
        let gateway = Gateway { inner: Arc::new(inner) };
        drop(gateway.replace(servers));
        gateway
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
            let known = before.iter().position(|upstream| *upstream.config() == config);
            upstreams.push(match known {
                Some(at) => before.swap_remove(at),
                None => {
                    let Inner { settings, starts, common, .. } = &*self.inner;
                    let (starts, common) = (starts.clone(), common.clone());
                    Arc::new(Upstream::new(config, settings.clone(), starts, common))
                }
            });
        }
        let names = upstreams.iter().map(|upstream| upstream.name().clone()).collect();
        *fleet = Arc::new(Fleet { names, upstreams });
        before
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

    /// Whatever a guest asks. Dropping the future cancels the call upstream.
    pub async fn answer(&self, ask: Ask, allowed: &ToolFilter) -> Result<Json, CallError> {
        match ask {
            Ask::Tool { server, tool, args } => {
                self.call_tool(&server, &tool, &args, allowed).await
            }
            Ask::Named { name, args } => self.call_named(&name, &args, allowed).await,
            Ask::ToolNames { server } => self.tool_names(&server, allowed).await,
            Ask::Discover { words } => self.discover(&words, allowed).await,
            Ask::Search { query, limit } => self.search_for_guest(query, limit, allowed).await,
            Ask::Schema { name } => {
                let tool = self.schema(&name, allowed).await?;
                self.bounded(&serde_json::to_value(tool).unwrap_or_default())
            }
            Ask::Help { name } => self.help(name.as_deref(), allowed).await,
        }
    }

    pub fn health(&self) -> Vec<ServerHealth> {
        self.fleet().upstreams.iter().map(|upstream| health(upstream)).collect()
    }

    /// Ends all servers at once, within two seconds.
    pub async fn shutdown(&self) {
        let fleet = self.fleet();
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
        let fleet = self.fleet();
        let listings: Vec<_> = fleet.upstreams.iter().map(|up| up.listing()).collect();
        let known = self.inner.catalogue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if known.is_made_from(&listings) {
            return known;
        }
        // Thousands of tools take milliseconds: not on a thread that serves others.
        let made =
            tokio::task::spawn_blocking(move || Catalogue::new(&fleet.names, listings)).await;
        let Ok(made) = made else { return known };
        let made = Arc::new(made);
        *self.inner.catalogue.lock().unwrap_or_else(PoisonError::into_inner) = made.clone();
        made
    }
}

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
    let (phase, left) = upstream.phase();
    ServerHealth {
        name: upstream.name().to_string(),
        state,
        tools: listing.as_ref().map(|listing| listing.tools.len()),
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
        problems: listing.map(|listing| listing.problems.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
