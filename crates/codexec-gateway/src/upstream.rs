//! One upstream server: started on first use, once for all callers, and restarted after it died.

mod breaker;
mod call;
mod callers;
mod changes;
mod client;
mod connection;
mod counts;
mod failure;
mod follow;
mod gate;
mod incoming;
mod lane;
mod listing;
mod log;
mod open;
mod outbox;
mod owner;
mod process;
mod progress;
mod remote;
mod start;
mod stdio;
mod theirs;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

pub(crate) use breaker::Phase;
pub(crate) use connection::Connection;
pub use counts::{CallCounts, Latency};
pub(crate) use failure::{Failure, UpstreamError};
pub(crate) use listing::{KeptBack, LIFE, Listing, Lookup};
pub use log::log_of;
pub(crate) use start::{StartRefusal, plan as plan_start};

use self::{breaker::Breaker, counts::Counts, gate::Gate};
use crate::{ServerConfig, Settings, bell::Bell, shelf::Shelf};

/// A server that takes longer to start gives up its start permit, so that others can start.
const START_TURN: Duration = Duration::from_secs(3);

/// State shared by all servers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    /// Limits concurrent starts.
    pub(crate) starts: Arc<Semaphore>,
    /// Limits the concurrent calls of all servers together.
    pub(crate) common: Arc<Semaphore>,
    /// Signalled at every new list.
    pub(crate) bell: Bell,
}

pub(crate) struct Upstream {
    config: ServerConfig,
    shared: Shared,
    state: watch::Sender<State>,
    /// The last list; it outlives the process it came from.
    shelf: Arc<Shelf>,
    started_at: Mutex<Option<Instant>>,
    failures: AtomicU32,
    gate: Gate,
    breaker: Mutex<Breaker>,
    counts: Counts,
    /// True after discovery has waited for it once without success.
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
    pub(crate) fn new(config: ServerConfig, shared: Shared) -> Upstream {
        let settings = &shared.settings;
        Upstream {
            shelf: Arc::new(Shelf::new(&config, settings)),
            gate: Gate::new(settings, &config.narrow),
            breaker: Mutex::new(Breaker::new(settings.breaker_open)),
            config,
            shared,
            state: watch::Sender::new(State::Idle),
            started_at: Mutex::new(None),
            failures: AtomicU32::new(0),
            counts: Counts::default(),
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

    pub(crate) fn counts(&self) -> CallCounts {
        let (in_flight, waiting) = (self.gate.in_flight(), self.gate.waiting());
        CallCounts { in_flight, waiting, ..self.counts.now() }
    }

    /// Returns the breaker's phase, and how long calls are still refused.
    pub(crate) fn phase(&self) -> (Phase, Option<Duration>) {
        let (now, breaker) = (Instant::now(), self.breaker());
        let open = match breaker.phase() {
            Phase::Open { until } => Some(until),
            Phase::Closed { .. } | Phase::Probing => None,
        };
        let until = open.max(breaker.held_until(now));
        (breaker.phase(), until.map(|until| until.saturating_duration_since(now)))
    }

    /// Returns the tools as last listed, or `None` before the first list.
    pub(crate) fn listing(&self) -> Option<Arc<Listing>> {
        self.shelf.listing()
    }

    pub(crate) fn shelf(&self) -> &Arc<Shelf> {
        &self.shelf
    }

    /// Returns true if the server should run but does not.
    pub(crate) fn is_due(&self) -> bool {
        is_due(&self.state.borrow()) && !self.shut.is_cancelled()
    }

    /// Starts the server in the background if it should run but does not. Returns at once.
    pub(crate) fn begin(self: &Arc<Upstream>) -> State {
        let begun = self.state.send_if_modified(|state| {
            let is_begun = is_due(state) && !self.shut.is_cancelled();
            if is_begun {
                *state = State::Starting;
            }
            is_begun
        });
        if begun {
            // A task of its own: the first caller may leave while others still wait.
            tokio::spawn(self.clone().run());
        }
        self.state()
    }

    /// Returns a connection to the running server, starting it if needed.
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

    /// Waits until the server has tools or has failed, but not beyond `until`, and for a slow
    /// server only once. Returns at once, without starting it, if a list is known.
    pub(crate) async fn settled(self: &Arc<Upstream>, until: Instant) -> State {
        if self.listing().is_some() {
            return self.state();
        }
        let mut states = self.state.subscribe();
        let state = self.begin();
        let is_worth_it =
            matches!(state, State::Starting) && !self.was_slow.load(Ordering::Relaxed);
        if is_worth_it {
            let settled = states.wait_for(|state| !matches!(state, State::Starting));
            if tokio::time::timeout_at(until, settled).await.is_err() {
                self.was_slow.store(true, Ordering::Relaxed);
            }
        }
        self.state()
    }

    /// Stops the server for good.
    pub(crate) async fn shutdown(&self) {
        self.shut.cancel();
        let state = self.state.send_replace(State::Idle);
        if let State::Ready(connection) = state {
            connection.close().await;
        }
    }

    /// Kills the server without waiting, for use in `Drop`.
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

    /// Sets the result of a start, unless there was a shutdown meanwhile.
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
        let last = self.started_at.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(last) = last {
            tokio::time::sleep_until(last + failure::FIRST_RETRY).await;
        }
        let Ok(turn) = self.shared.starts.acquire().await else {
            return Err(UpstreamError::ShutDown);
        };
        let now = Instant::now();
        *self.started_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        self.counts.started();
        let limit =
            self.config.narrow.startup_timeout.unwrap_or(self.shared.settings.startup_timeout);
        let mut opening = std::pin::pin!(self.open_until(now + limit));
        match tokio::time::timeout(START_TURN, &mut opening).await {
            Ok(opened) => opened,
            Err(_) => {
                drop(turn);
                opening.await
            }
        }
    }

    async fn open_until(&self, deadline: Instant) -> Result<Connection, UpstreamError> {
        let connection = open::open(&self.config, &self.shared.settings, deadline).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        match self.list(&connection, left).await {
            Ok(()) => Ok(connection),
            Err(error) => Err(UpstreamError::Start(format!("no list of tools: {error}"))),
        }
    }
}

fn is_due(state: &State) -> bool {
    match state {
        State::Idle => true,
        State::Starting => false,
        State::Ready(connection) => connection.is_gone(),
        State::Failed(failure) => failure.is_over(),
    }
}

#[cfg(test)]
mod tests;
