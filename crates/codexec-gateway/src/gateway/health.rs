//! The state of servers, for people and for `health`.

use crate::upstream::{BreakerPhase, CallCounts, Upstream, UpstreamError, UpstreamState};

/// The state of one server.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ServerHealth {
    pub name: String,
    pub state: ServerState,
    /// True if the server was started and does not answer, or did not answer last time.
    pub is_hung: bool,
    /// The number of usable tools in the last list; `None` before the first list.
    pub tools: Option<usize>,
    /// The number of tools that wait for approval, not counted in `tools`.
    pub held: usize,
    /// True if the list has expired and the server has not sent a new one.
    pub stale: bool,
    pub error: Option<String>,
    pub breaker: BreakerState,
    /// Calls are refused for this many seconds.
    pub retry_s: Option<u64>,
    pub counts: CallCounts,
    pub pid: Option<u32>,
    /// Problems with its list, one sentence each.
    pub problems: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// Not needed yet, or ended and not needed since.
    Idle,
    Starting,
    Ready,
    /// The user has to log in.
    NeedsLogin,
    Failed,
}

/// The state of a server's breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    Closed,
    /// Open after too many failures in a row.
    Open,
    /// Open, and one call is testing whether the server has recovered.
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
            ServerState::NeedsLogin => "needs login",
            ServerState::Failed => "failed",
        }
    }
}

impl ServerHealth {
    /// Returns what is wrong with the server in one sentence, or `None` if it is healthy.
    pub fn describe_problem(&self) -> Option<String> {
        let name = &self.name;
        if let Some(error) = &self.error {
            return Some(format!("server {name}: {error}"));
        }
        if self.is_hung {
            return Some(format!("server {name}: it was started and does not answer"));
        }
        (self.breaker != BreakerState::Closed).then(|| {
            let error = self.counts.last_error.as_deref().unwrap_or("no answer");
            format!("server {name}: its last calls failed: {error}")
        })
    }

    /// Returns the state in a word or two.
    pub fn state_name(&self) -> &'static str {
        if self.is_hung { "hung" } else { self.state.name() }
    }
}

pub(super) fn server_health(upstream: &Upstream) -> ServerHealth {
    let (state, error, pid) = match upstream.state() {
        UpstreamState::Idle => (ServerState::Idle, None, None),
        UpstreamState::Starting => (ServerState::Starting, None, None),
        UpstreamState::Ready(connection) if connection.is_closed() => {
            (ServerState::Idle, None, None)
        }
        UpstreamState::Ready(connection) => (ServerState::Ready, None, connection.pid()),
        UpstreamState::Failed(failure) => {
            let state = match failure.error {
                UpstreamError::NeedsLogin { .. } => ServerState::NeedsLogin,
                _ => ServerState::Failed,
            };
            (state, Some(failure.error.to_string()), None)
        }
    };
    let listing = upstream.listing();
    let mut problems: Vec<String> = upstream.tool_cache().trust().problem().into_iter().collect();
    problems.extend(listing.iter().flat_map(|listing| listing.problems.iter().cloned()));
    let (phase, left) = upstream.breaker_phase();
    ServerHealth {
        name: upstream.name().to_string(),
        state,
        is_hung: state == ServerState::Starting && upstream.is_hung(),
        tools: listing.as_ref().map(|listing| listing.tools.len()),
        held: listing.as_ref().map_or(0, |listing| listing.held_tools().count()),
        stale: upstream.tool_cache().is_stale(),
        error,
        breaker: match phase {
            BreakerPhase::Closed { .. } => BreakerState::Closed,
            BreakerPhase::Open { .. } => BreakerState::Open,
            BreakerPhase::Probing => BreakerState::Probing,
        },
        retry_s: left
            .map(|left| left.as_nanos().div_ceil(1_000_000_000).try_into().unwrap_or(u64::MAX)),
        counts: upstream.counts(),
        pid,
        problems,
    }
}
