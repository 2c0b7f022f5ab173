//! The handle to all upstreams.

mod approval;
mod blocking;
mod call;
mod direct;
mod discovery;
mod health;
mod lists;
mod login;
mod metrics;
mod missing;
mod names;
mod overview;
mod refusals;
mod relay;
mod resources;
mod rounds;
mod servers;
mod stats;

use std::sync::{Arc, Mutex, PoisonError};

use codexec_mcp_config::ServerConfig;
use codexec_schema::Checker;
use codexec_types::{Ask, CallCode, CallError, Json, Language, ServerName, ToolFilter};
use futures::future::join_all;
use tokio::{
    sync::{Semaphore, watch},
    time::Duration,
};

pub use approval::ApproveError;
pub use direct::DirectTool;
pub use discovery::{SearchQuery, SearchReply, ToolInfo};
pub use health::{BreakerState, ServerHealth, ServerState};
pub use metrics::ServerMetrics;
pub use missing::{MissingReason, MissingServer, describe_missing};
pub use relay::{Relay, RelayCall, RelayError, RelayRequest};
pub use rounds::RoundInput;
pub use stats::ServerCost;

use self::resources::{PROMPTS, RESOURCES, TEMPLATES};
use crate::{
    Caller, GatewaySettings,
    catalogue::Catalogue,
    change_signal::ChangeSignal,
    observed_outputs::ObservedOutputs,
    upstream::{Upstream, UpstreamShared},
};

/// Servers that start concurrently.
const STARTS_AT_ONCE: usize = 32;
/// The time limit for a shutdown of all servers.
const SHUTDOWN: Duration = Duration::from_secs(2);

/// The user's servers. Cheap to clone; the servers stop with the last clone.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
    /// The party this handle calls for.
    caller: Caller,
    /// How long this handle's lists wait for servers that are still starting.
    list_wait: Duration,
    /// This caller's permit for work on blocking threads.
    work_permit: Arc<Semaphore>,
    /// Notes about servers whose tools are missing in this handle's answers.
    notes: Arc<missing::DiscoveryNotes>,
}

struct Inner {
    /// Limits concurrent starts in the background.
    background_starts: Arc<Semaphore>,
    fleet: Mutex<Arc<Fleet>>,
    disabled: Mutex<Vec<(ServerName, String)>>,
    shared: UpstreamShared,
    catalogue: Mutex<Arc<Catalogue>>,
    /// Held while the catalogue is being built.
    catalogue_build: Semaphore,
    names: Mutex<direct::DirectNames>,
    observed: Arc<ObservedOutputs>,
    checker: Checker,
    /// Limits concurrent work on blocking threads.
    work_threads: Arc<Semaphore>,
}

/// The configured servers. Replaced as a whole when the configuration changes.
#[derive(Default)]
pub(crate) struct Fleet {
    /// In configured order.
    pub(crate) names: Vec<ServerName>,
    /// In the order of `names`.
    pub(crate) upstreams: Vec<Arc<Upstream>>,
}

impl Gateway {
    /// Creates the gateway without starting any server.
    pub fn new(servers: Vec<ServerConfig>, settings: GatewaySettings) -> Gateway {
        let observed = ObservedOutputs::new(settings.home.as_ref());
        let shared_calls = Semaphore::new(settings.calls_in_all.min(Semaphore::MAX_PERMITS));
        let shared = UpstreamShared {
            settings: Arc::new(settings),
            starts: Arc::new(Semaphore::new(STARTS_AT_ONCE)),
            shared_calls: Arc::new(shared_calls),
            list_changed: ChangeSignal::default(),
            notices: None,
        };
        Gateway::with_parts(servers, shared, observed)
    }

    fn with_parts(
        servers: Vec<ServerConfig>,
        shared: UpstreamShared,
        observed: Arc<ObservedOutputs>,
    ) -> Gateway {
        let list_wait = shared.settings.catalogue_wait;
        let inner = Inner {
            background_starts: Arc::new(Semaphore::new(lists::BACKGROUND_STARTS)),
            fleet: Mutex::default(),
            disabled: Mutex::default(),
            shared,
            catalogue: Mutex::default(),
            catalogue_build: Semaphore::new(1),
            names: Mutex::default(),
            observed,
            checker: Checker::default(),
            work_threads: Arc::new(Semaphore::new(blocking::count_threads())),
        };
        let work_permit = Arc::new(Semaphore::new(blocking::OWN_PERMITS));
        let gateway = Gateway {
            inner: Arc::new(inner),
            caller: Caller::default(),
            list_wait,
            work_permit,
            notes: Arc::default(),
        };
        drop(gateway.replace(servers));
        gateway
    }

    /// Returns a handle to the same servers that calls for another caller.
    #[must_use]
    pub fn on_behalf_of(&self, caller: Caller) -> Gateway {
        Gateway {
            inner: self.inner.clone(),
            caller,
            list_wait: self.list_wait,
            work_permit: Gateway::new_work_permit(),
            notes: Arc::default(),
        }
    }

    /// Returns a handle whose lists wait at most this long for servers that are still starting.
    #[must_use]
    pub fn with_list_wait(&self, list_wait: Duration) -> Gateway {
        let list_wait = self.list_wait.min(list_wait);
        Gateway { list_wait, ..self.clone() }
    }

    /// Returns the limit on concurrent calls of one server, unless its own entry has another.
    pub fn max_concurrent_calls(&self) -> usize {
        let settings = &self.inner.shared.settings;
        settings.calls_at_once.min(settings.calls_in_all)
    }

    /// Sets the servers that the user has disabled, with the reason, so that errors can say so.
    pub fn set_disabled(&self, disabled: Vec<(ServerName, String)>) {
        *self.inner.disabled.lock().unwrap_or_else(PoisonError::into_inner) = disabled;
    }

    /// Returns the servers that the user has disabled, with the reason.
    pub fn disabled_servers(&self) -> Vec<(ServerName, String)> {
        self.inner.disabled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Subscribes to changes of any server's list.
    pub fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.inner.shared.list_changed.subscribe()
    }

    /// Switches to these servers. Servers with an unchanged entry keep their connections, new ones
    /// start when they are needed, and the others stop.
    pub async fn reconfigure(&self, servers: Vec<ServerConfig>) {
        let left = self.replace(servers);
        join_all(left.iter().map(|upstream| upstream.shutdown())).await;
    }

    /// Replaces the servers and returns those that are no longer configured.
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
        self.inner.shared.list_changed.notify();
        before
    }

    /// Stops a server and starts it again. Returns false if the name is unknown.
    pub async fn restart(&self, name: &str) -> bool {
        let Some(old) = self.replace_upstream(name) else { return false };
        old.shutdown().await;
        if let Some(new) = self.fleet().upstreams.iter().find(|up| up.name().as_str() == name) {
            new.start_if_needed();
        }
        true
    }

    /// Replaces a server with a fresh one, and returns the old one.
    fn replace_upstream(&self, name: &str) -> Option<Arc<Upstream>> {
        let mut fleet = self.inner.fleet.lock().unwrap_or_else(PoisonError::into_inner);
        let at = fleet.upstreams.iter().position(|upstream| upstream.name().as_str() == name)?;
        let mut upstreams = fleet.upstreams.clone();
        let slot = upstreams.get_mut(at)?;
        let new = Upstream::new(slot.config().clone(), self.inner.shared.clone());
        let old = std::mem::replace(slot, Arc::new(new));
        *fleet = Arc::new(Fleet { names: fleet.names.clone(), upstreams });
        Some(old)
    }

    /// Starts all servers and waits until each is ready or has failed, at most this long.
    pub async fn start_all(&self, limit: Duration) {
        let fleet = self.fleet();
        let all = join_all(fleet.upstreams.iter().map(Upstream::connect));
        // Servers that are not ready by then are reported as starting.
        let _ = tokio::time::timeout(limit, all).await;
    }

    fn fleet(&self) -> Arc<Fleet> {
        self.inner.fleet.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the names in configured order.
    pub fn server_names(&self) -> Vec<ServerName> {
        self.fleet().names.clone()
    }

    /// Answers any request of a guest, in the guest's language. Dropping the future cancels the
    /// call upstream.
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
            Ask::Servers {} => self.list_servers(allowed),
            Ask::ToolNames { server } => self.tool_names(&server, allowed).await,
            Ask::Discover { words } => self.discover(words, allowed).await,
            Ask::Search { query: text, limit, server, kind, detail } => {
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                let query = SearchQuery { text, limit, detail, server, kind };
                self.search_for_guest(&query, allowed, voice).await
            }
            Ask::Schema { name } => match self.schema_or_note(&name, allowed, voice).await? {
                Some(tool) => self.render_json(tool).await,
                None => Ok(Json::null()),
            },
            Ask::Resources { server } => self.list_items(RESOURCES, server, allowed).await,
            Ask::ResourceTemplates { server } => self.list_items(TEMPLATES, server, allowed).await,
            Ask::ReadResource { server, uri } => self.read_resource(&server, &uri, allowed).await,
            Ask::Prompts { server } => self.list_items(PROMPTS, server, allowed).await,
            Ask::Prompt { server, name, args } => self.prompt(&server, &name, &args, allowed).await,
            Ask::Help { name } => self.help(name.as_deref(), allowed, voice).await,
            // Answered by the code that runs the guest.
            Ask::Own { name, .. } => {
                let message = format!("unknown function {name}");
                Err(CallError::new(CallCode::ToolNotFound, message))
            }
        }
    }

    pub fn health(&self) -> Vec<ServerHealth> {
        self.fleet().upstreams.iter().map(|upstream| health::server_health(upstream)).collect()
    }

    /// Stops all servers at once, within two seconds.
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

#[cfg(test)]
mod tests;
