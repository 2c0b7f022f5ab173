//! One upstream server: started on first use, once for all callers, and restarted after it died.

mod breaker;
mod call;
mod call_pipe;
mod callers;
mod client;
mod connection;
mod counts;
mod error;
mod gate;
mod incoming;
mod line_owner;
mod list_changes;
mod list_refresh;
mod listing;
mod log;
mod open;
mod process;
mod progress;
mod remote;
mod server_events;
mod server_messages;
mod start;
mod stdin_writer;
mod stdio;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use codexec_mcp_config::ServerConfig;
use codexec_telemetry::HistogramCounts;
use tokio::{
    sync::{Semaphore, broadcast, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

pub(crate) use breaker::BreakerPhase;
pub(crate) use connection::UpstreamConnection;
pub use counts::{CallCounts, Latency};
pub(crate) use error::{FailedStart, UpstreamError};
pub(crate) use listing::{MAX_LIST_TTL, ToolListing, ToolLookup, WithheldReason};
pub use log::read_server_log;
pub use server_events::ServerNotice;
pub(crate) use start::{StartRefusal, plan as plan_start};

use self::{breaker::Breaker, counts::CallCounters, gate::Gate, server_events::ServerEvents};
use crate::{GatewaySettings, SearchWait, change_signal::ChangeSignal, tool_cache::ToolCache};

/// A server that takes longer to start gives up its start permit, so that others can start, and
/// counts as hung until it answers.
pub(crate) const START_PERMIT_TIME: Duration = Duration::from_secs(3);

/// State shared by all servers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct UpstreamShared {
    pub(crate) settings: Arc<GatewaySettings>,
    /// Limits concurrent starts.
    pub(crate) starts: Arc<Semaphore>,
    /// Limits the concurrent calls of all servers together.
    pub(crate) shared_calls: Arc<Semaphore>,
    /// Signalled at every new list.
    pub(crate) list_changed: ChangeSignal,
    /// Notifications for the clients of a relay; `None` if this is not for a relay.
    pub(crate) notices: Option<broadcast::Sender<ServerNotice>>,
}

pub(crate) struct Upstream {
    config: ServerConfig,
    shared: UpstreamShared,
    state: watch::Sender<UpstreamState>,
    /// Callers that wait for the start. A `watch` wakes them in any order, a semaphore in order of
    /// arrival.
    start_queue: Semaphore,
    /// The last list; it outlives the process it came from.
    tool_cache: Arc<ToolCache>,
    started_at: Mutex<Option<Instant>>,
    failures: AtomicU32,
    gate: Gate,
    breaker: Mutex<Breaker>,
    counts: CallCounters,
    /// True after discovery has waited for it once without success.
    was_slow: AtomicBool,
    /// True while the server waits for its turn to be started in the background.
    is_queued: AtomicBool,
    shutdown_token: CancellationToken,
}

#[derive(Clone)]
pub(crate) enum UpstreamState {
    Idle,
    Starting,
    Ready(Arc<UpstreamConnection>),
    Failed(Arc<FailedStart>),
}

impl Upstream {
    pub(crate) fn new(config: ServerConfig, shared: UpstreamShared) -> Upstream {
        let settings = &shared.settings;
        Upstream {
            tool_cache: Arc::new(ToolCache::new(&config, settings)),
            gate: Gate::new(settings, &config.narrow),
            breaker: Mutex::new(Breaker::new(settings.breaker_open)),
            config,
            shared,
            state: watch::Sender::new(UpstreamState::Idle),
            start_queue: Semaphore::new(1),
            started_at: Mutex::new(None),
            failures: AtomicU32::new(0),
            counts: CallCounters::default(),
            was_slow: AtomicBool::new(false),
            is_queued: AtomicBool::new(false),
            shutdown_token: CancellationToken::new(),
        }
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub(crate) fn name(&self) -> &codexec_types::ServerName {
        &self.config.name
    }

    pub(crate) fn state(&self) -> UpstreamState {
        self.state.borrow().clone()
    }

    pub(crate) fn counts(&self) -> CallCounts {
        let (in_flight, waiting) = (self.gate.in_flight(), self.gate.waiting_count());
        CallCounts { in_flight, waiting, ..self.counts.snapshot() }
    }

    /// Returns how long calls waited for their turn.
    pub(crate) fn waits(&self) -> HistogramCounts {
        self.gate.waits()
    }

    /// Counts a tool that was looked up: in the known list, or by asking the server.
    pub(crate) fn count_lookup(&self, is_known: bool) {
        self.counts.count_lookup(is_known);
    }

    /// Returns the lookups in the known list, and those that had to ask the server.
    pub(crate) fn lookups(&self) -> (u64, u64) {
        self.counts.lookups()
    }

    /// Returns the breaker's phase, and how long calls are still refused.
    pub(crate) fn breaker_phase(&self) -> (BreakerPhase, Option<Duration>) {
        let (now, breaker) = (Instant::now(), self.breaker());
        let open = match breaker.phase() {
            BreakerPhase::Open { until } => Some(until),
            BreakerPhase::Closed { .. } | BreakerPhase::Probing => None,
        };
        let until = open.max(breaker.backoff_until(now));
        (breaker.phase(), until.map(|until| until.saturating_duration_since(now)))
    }

    /// Returns the tools as last listed, or `None` before the first list.
    pub(crate) fn listing(&self) -> Option<Arc<ToolListing>> {
        self.tool_cache.listing()
    }

    pub(crate) fn tool_cache(&self) -> &Arc<ToolCache> {
        &self.tool_cache
    }

    /// Returns true if the server should run but does not.
    pub(crate) fn needs_start(&self) -> bool {
        needs_start(&self.state.borrow()) && !self.shutdown_token.is_cancelled()
    }

    /// Starts the server in the background if it should run but does not. Returns at once.
    pub(crate) fn start_if_needed(self: &Arc<Upstream>) -> UpstreamState {
        let begun = self.state.send_if_modified(|state| {
            let is_begun = needs_start(state) && !self.shutdown_token.is_cancelled();
            if is_begun {
                *state = UpstreamState::Starting;
            }
            is_begun
        });
        if begun {
            // A task of its own: the first caller may leave while others still wait.
            tokio::spawn(self.clone().run());
        }
        self.state()
    }

    /// Returns a connection to the running server, starting it if needed. Callers that wait for
    /// the start continue in order of arrival.
    pub(crate) async fn connect(
        self: &Arc<Upstream>,
    ) -> Result<Arc<UpstreamConnection>, UpstreamError> {
        let is_starting = matches!(self.start_if_needed(), UpstreamState::Starting);
        // Whoever comes while others still wait goes behind them.
        let _turn = match is_starting || self.start_queue.available_permits() == 0 {
            true => Some(self.start_queue.acquire().await.map_err(|_| UpstreamError::ShutDown)?),
            false => None,
        };
        let mut states = self.state.subscribe();
        let mut state = self.start_if_needed();
        loop {
            match state {
                UpstreamState::Ready(connection) => return Ok(connection),
                UpstreamState::Failed(failure) => return Err(failure.error_for_caller()),
                UpstreamState::Idle => return Err(UpstreamError::ShutDown),
                UpstreamState::Starting => {}
            }
            if states.changed().await.is_err() {
                return Err(UpstreamError::ShutDown);
            }
            state = states.borrow_and_update().clone();
        }
    }

    /// Returns true if the server was not queued for a start before.
    pub(crate) fn queue_start(&self) -> bool {
        !self.is_queued.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn leave_queue(&self) {
        self.is_queued.store(false, Ordering::Release);
    }

    /// Returns true if the server should have answered by now, or did not answer last time.
    pub(crate) fn is_hung(&self) -> bool {
        self.tool_cache.is_hung()
    }

    /// Waits until a start that was begun, or is about to begin, has ended.
    pub(crate) async fn wait_for_start(&self) {
        let is_over = |state: &UpstreamState| {
            matches!(state, UpstreamState::Ready(_) | UpstreamState::Failed(_))
        };
        // Fails only at a shutdown.
        let _ = self.state.subscribe().wait_for(is_over).await;
    }

    /// Waits until the server has tools or has failed, but not beyond `until`, and for a slow
    /// server only once. Returns at once, without starting it, if a list is known.
    pub(crate) async fn wait_until_settled(self: &Arc<Upstream>, until: Instant) -> UpstreamState {
        if self.listing().is_some() {
            return self.state();
        }
        let mut states = self.state.subscribe();
        let state = self.start_if_needed();
        let waits_for_hung = self.shared.settings.search_wait == SearchWait::AllServers;
        let is_worth_it = matches!(state, UpstreamState::Starting)
            && !self.was_slow.load(Ordering::Relaxed)
            && (waits_for_hung || !self.is_hung());
        if is_worth_it {
            let settled = async {
                let _turn = self.start_queue.acquire().await;
                let _ = states.wait_for(|state| !matches!(state, UpstreamState::Starting)).await;
            };
            if tokio::time::timeout_at(until, settled).await.is_err() {
                self.was_slow.store(true, Ordering::Relaxed);
            }
        }
        self.state()
    }

    /// Stops the server for good.
    pub(crate) async fn shutdown(&self) {
        self.shutdown_token.cancel();
        let state = self.state.send_replace(UpstreamState::Idle);
        if let UpstreamState::Ready(connection) = state {
            connection.close().await;
        }
    }

    /// Kills the server without waiting, for use in `Drop`.
    pub(crate) fn kill(&self) {
        self.shutdown_token.cancel();
        if let UpstreamState::Ready(connection) = self.state() {
            connection.kill();
        }
    }

    async fn run(self: Arc<Upstream>) {
        let opened = tokio::select! {
            opened = self.open() => opened,
            () = self.shutdown_token.cancelled() => Err(UpstreamError::ShutDown),
        };
        match opened {
            Ok(connection) => {
                tracing::info!(server = %self.config.name, pid = ?connection.pid(), "upstream up");
                self.failures.store(0, Ordering::Relaxed);
                let connection = Arc::new(connection);
                self.finish_start(UpstreamState::Ready(connection.clone()));
                self.keep_list_current(&connection).await;
            }
            Err(error) => {
                tracing::info!(server = %self.config.name, "upstream failed to start");
                tracing::debug!(server = %self.config.name, %error, "why it failed");
                let failures = self.failures.fetch_add(1, Ordering::Relaxed);
                self.finish_start(UpstreamState::Failed(Arc::new(FailedStart::new(
                    error, failures,
                ))));
            }
        }
    }

    /// Sets the result of a start, unless there was a shutdown meanwhile.
    fn finish_start(&self, settled: UpstreamState) {
        self.state.send_if_modified(|state| {
            let is_ours = matches!(state, UpstreamState::Starting);
            if is_ours {
                *state = settled;
            }
            is_ours
        });
    }

    async fn open(&self) -> Result<UpstreamConnection, UpstreamError> {
        let last = self.started_at.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = last {
            tokio::time::sleep_until(last + error::FIRST_RETRY).await;
        }
        let Ok(permit) = self.shared.starts.acquire().await else {
            return Err(UpstreamError::ShutDown);
        };
        let now = Instant::now();
        *self.started_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        self.counts.count_start();
        let limit =
            self.config.narrow.startup_timeout.unwrap_or(self.shared.settings.startup_timeout);
        let mut opening = std::pin::pin!(self.open_until(now + limit));
        match tokio::time::timeout(START_PERMIT_TIME, &mut opening).await {
            Ok(opened) => {
                self.tool_cache.set_hung(false).await;
                opened
            }
            Err(_) => {
                drop(permit);
                let (opened, ()) = tokio::join!(opening, self.tool_cache.set_hung(true));
                if opened.is_ok() {
                    self.tool_cache.set_hung(false).await;
                }
                opened
            }
        }
    }

    async fn open_until(&self, deadline: Instant) -> Result<UpstreamConnection, UpstreamError> {
        let events = ServerEvents::new(self.shared.notices.clone());
        let opened = open::open(&self.config, &self.shared.settings, events, deadline);
        let connection = opened.await?;
        let left = deadline.saturating_duration_since(Instant::now());
        match self.refresh_list(&connection, left).await {
            Ok(()) => Ok(connection),
            Err(error) => Err(UpstreamError::Start(format!("no list of tools: {error}"))),
        }
    }
}

fn needs_start(state: &UpstreamState) -> bool {
    match state {
        UpstreamState::Idle => true,
        UpstreamState::Starting => false,
        UpstreamState::Ready(connection) => connection.is_closed(),
        UpstreamState::Failed(failure) => failure.is_retry_due(),
    }
}

#[cfg(test)]
mod tests;
