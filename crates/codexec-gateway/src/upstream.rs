//! One upstream: started when somebody needs it, once for all who do, and started again after
//! it died.

mod client;
mod connection;
mod failure;
mod incoming;
mod listing;
mod log;
mod open;
mod owner;
mod process;
mod stdio;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

pub(crate) use connection::Connection;
pub(crate) use failure::{Failure, UpstreamError};
pub(crate) use listing::Listing;
pub use log::log_of;

use crate::{ServerConfig, Settings};

/// Calls that one server works on at a time; the others wait within their own time.
const CALLS_AT_ONCE: usize = 100;
/// A server that keeps saying its tools have changed is asked no more often.
const LISTING_PAUSE: Duration = Duration::from_millis(500);

pub(crate) struct Upstream {
    config: ServerConfig,
    settings: Arc<Settings>,
    /// How many servers may start at the same time, shared by all.
    starts: Arc<Semaphore>,
    state: watch::Sender<State>,
    /// The last list there was; it outlives the process it came from.
    listing: Mutex<Option<Arc<Listing>>>,
    started_at: Mutex<Option<Instant>>,
    failures: AtomicU32,
    slots: Semaphore,
    calls: AtomicU64,
    /// Discovery has waited for it once, in vain.
    was_slow: AtomicBool,
    shut: CancellationToken,
}

#[derive(Clone)]
pub(crate) enum State {
    Idle,
    Starting,
    Ready(Arc<Connection>),
    Failed(Arc<Failure>),
}

impl Upstream {
    pub(crate) fn new(
        config: ServerConfig,
        settings: Arc<Settings>,
        starts: Arc<Semaphore>,
    ) -> Upstream {
        Upstream {
            config,
            settings,
            starts,
            state: watch::Sender::new(State::Idle),
            listing: Mutex::new(None),
            started_at: Mutex::new(None),
            failures: AtomicU32::new(0),
            slots: Semaphore::new(CALLS_AT_ONCE),
            calls: AtomicU64::new(0),
            was_slow: AtomicBool::new(false),
            shut: CancellationToken::new(),
        }
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub(crate) fn name(&self) -> &codexec_types::ServerName {
        &self.config.name
    }

    pub(crate) fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The tools as last listed; `None` before the first list.
    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins to start the server if it should run and does not. Returns at once.
    pub(crate) fn begin(self: &Arc<Upstream>) -> State {
        let begun = self.state.send_if_modified(|state| {
            let is_due = match state {
                State::Idle => true,
                State::Starting => false,
                State::Ready(connection) => connection.is_gone(),
                State::Failed(failure) => failure.is_over(),
            };
            let is_begun = is_due && !self.shut.is_cancelled();
            if is_begun {
                *state = State::Starting;
            }
            is_begun
        });
        if begun {
            // Its own task: whoever asked first may leave, others wait for it too.
            tokio::spawn(self.clone().run());
        }
        self.state()
    }

    /// A running server, started if need be.
    pub(crate) async fn connected(self: &Arc<Upstream>) -> Result<Arc<Connection>, UpstreamError> {
        let mut states = self.state.subscribe();
        let mut state = self.begin();
        loop {
            match state {
                State::Ready(connection) => return Ok(connection),
                State::Failed(failure) => return Err(failure.for_caller()),
                State::Idle => return Err(UpstreamError::ShutDown),
                State::Starting => {}
            }
            if states.changed().await.is_err() {
                return Err(UpstreamError::ShutDown);
            }
            state = states.borrow_and_update().clone();
        }
    }

    /// Waits until it has tools or has failed, but not beyond `until`, and for a slow server
    /// only once.
    pub(crate) async fn settled(self: &Arc<Upstream>, until: Instant) -> State {
        let mut states = self.state.subscribe();
        let state = self.begin();
        let is_worth_it = matches!(state, State::Starting)
            && self.listing().is_none()
            && !self.was_slow.load(Ordering::Relaxed);
        if is_worth_it {
            let settled = states.wait_for(|state| !matches!(state, State::Starting));
            if tokio::time::timeout_at(until, settled).await.is_err() {
                self.was_slow.store(true, Ordering::Relaxed);
            }
        }
        self.state()
    }

    /// Calls a tool and gives its raw result.
    pub(crate) async fn call(
        &self,
        connection: &Connection,
        tool: &str,
        args: JsonObject,
    ) -> Result<Value, UpstreamError> {
        let limit = self.settings.call_timeout;
        let deadline = Instant::now() + limit;
        let slot = tokio::time::timeout_at(deadline, self.slots.acquire()).await;
        let Ok(Ok(_slot)) = slot else { return Err(UpstreamError::Timeout(limit)) };
        self.calls.fetch_add(1, Ordering::Relaxed);
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(args);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let left = deadline.saturating_duration_since(Instant::now());
        connection.request(request, left).await.map_err(|err| match err {
            UpstreamError::Timeout(_) => UpstreamError::Timeout(limit),
            other => other,
        })
    }

    /// Ends the server and starts it no more.
    pub(crate) async fn shutdown(&self) {
        self.shut.cancel();
        let state = self.state.send_replace(State::Idle);
        if let State::Ready(connection) = state {
            connection.close().await;
        }
    }

    /// The same without waiting, for a drop.
    pub(crate) fn kill(&self) {
        self.shut.cancel();
        if let State::Ready(connection) = self.state() {
            connection.kill();
        }
    }

    async fn run(self: Arc<Upstream>) {
        let opened = tokio::select! {
            opened = self.open() => opened,
            () = self.shut.cancelled() => Err(UpstreamError::ShutDown),
        };
        match opened {
            Ok(connection) => {
                tracing::info!(server = %self.config.name, pid = ?connection.pid(), "upstream up");
                self.failures.store(0, Ordering::Relaxed);
                let connection = Arc::new(connection);
                self.settle(State::Ready(connection.clone()));
                self.follow(&connection).await;
            }
            Err(error) => {
                tracing::info!(server = %self.config.name, "upstream failed to start");
                tracing::debug!(server = %self.config.name, %error, "why it failed");
                let failures = self.failures.fetch_add(1, Ordering::Relaxed);
                self.settle(State::Failed(Arc::new(Failure::new(error, failures))));
            }
        }
    }

    /// Only a start may settle, and not after a shutdown.
    fn settle(&self, settled: State) {
        self.state.send_if_modified(|state| {
            let is_ours = matches!(state, State::Starting);
            if is_ours {
                *state = settled;
            }
            is_ours
        });
    }

    async fn open(&self) -> Result<Connection, UpstreamError> {
        let Ok(_start) = self.starts.acquire().await else { return Err(UpstreamError::ShutDown) };
        let last = self.started_at.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = last {
            tokio::time::sleep_until(last + failure::FIRST_RETRY).await;
        }
        let now = Instant::now();
        *self.started_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        let deadline = now + self.settings.startup_timeout;
        let connection = open::open(&self.config, &self.settings, deadline).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        match listing::list(&connection, left).await {
            Ok(listing) => self.keep(listing),
            Err(error) => return Err(UpstreamError::Start(format!("no list of tools: {error}"))),
        }
        Ok(connection)
    }

    fn keep(&self, listing: Listing) {
        let listing = Some(Arc::new(listing));
        *self.listing.lock().unwrap_or_else(PoisonError::into_inner) = listing;
    }

    /// Lists again whenever the server says so, until it ends.
    async fn follow(&self, connection: &Connection) {
        loop {
            tokio::select! {
                () = connection.changed.notified() => {}
                () = connection.gone() => break,
                () = self.shut.cancelled() => return,
            }
            if let Ok(listing) = listing::list(connection, self.settings.call_timeout).await {
                self.keep(listing);
            }
            tokio::time::sleep(LISTING_PAUSE).await;
        }
        tracing::info!(server = %self.config.name, "upstream down");
        connection.close().await;
    }
}

#[cfg(test)]
mod tests;
