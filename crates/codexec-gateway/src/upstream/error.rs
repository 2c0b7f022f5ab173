//! Why a request to a server failed, and when to retry.

use std::time::Duration;

use codexec_types::CallCode;
use tokio::time::Instant;

use super::breaker::CallVerdict;
use crate::RpcError;

/// The first retry delay, and the minimum time between two starts.
pub(super) const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(30);

/// A failed start.
pub(crate) struct FailedStart {
    pub(crate) error: UpstreamError,
    at: Instant,
    retry_after: Duration,
}

/// Why a request to a server failed. The messages are read by the author of the guest code.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error("it did not start: {0}")]
    Start(String),
    #[error("it failed to start {ago_s} s ago: {reason}; retry in {retry_s} s")]
    RetryLater { reason: String, ago_s: u64, retry_s: u64 },
    #[error("{why}; log in with `codexec servers login {server}`")]
    NeedsLogin { why: String, server: String },
    #[error("it ended ({0})")]
    Ended(String),
    #[error("the request failed: {0}")]
    Unreachable(String),
    #[error("it does not read its stdin, and the queue of requests is full; try again later")]
    Backlog,
    #[error("it is busy and asked for a pause; try again in {} s", round_up_seconds(*.retry_after))]
    Busy { retry_after: Duration },
    #[error(
        "circuit open: it failed {failures} times in a row, last error: {reason}; try again in \
         {retry_s} s"
    )]
    BreakerOpen { failures: u32, reason: String, retry_s: u64 },
    #[error(
        "circuit open: it failed before ({reason}), and one call is testing it now; try again in \
         {retry_s} s"
    )]
    BreakerProbing { reason: String, retry_s: u64 },
    #[error(
        "Service Unavailable: {under_way} calls are under way and {waiting} more wait; try again in \
         {retry_s} s"
    )]
    QueueFull { under_way: usize, waiting: usize, retry_s: u64 },
    #[error(
        "Service Unavailable: {under_way} calls are under way, and none of them ended in the \
         {waited_s} s that this one waited; try again in {retry_s} s"
    )]
    QueueTimeout { under_way: usize, waited_s: u64, retry_s: u64 },
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    #[error("it announced a change of its tools, but did not list them")]
    ListMissing,
    #[error("the tool's definition has changed while the call waited; try again")]
    Outdated,
    #[error("it does not support this method")]
    NoSuchMethod,
    #[error("{0}")]
    Refused(String),
    /// The server answered with an error of its own.
    #[error("{0}")]
    Rejected(RpcError),
    #[error("the gateway is shutting down")]
    ShutDown,
}

impl UpstreamError {
    /// Returns the code by which code tells this error from others.
    pub(crate) fn call_code(&self) -> CallCode {
        match self {
            UpstreamError::BreakerOpen { .. } | UpstreamError::BreakerProbing { .. } => {
                CallCode::CircuitOpen
            }
            UpstreamError::QueueFull { .. } | UpstreamError::QueueTimeout { .. } => {
                CallCode::ServiceUnavailable
            }
            UpstreamError::Start(_)
            | UpstreamError::RetryLater { .. }
            | UpstreamError::NeedsLogin { .. }
            | UpstreamError::Ended(_)
            | UpstreamError::Unreachable(_)
            | UpstreamError::Backlog
            | UpstreamError::Busy { .. }
            | UpstreamError::Timeout(_)
            | UpstreamError::ListMissing
            | UpstreamError::Outdated
            | UpstreamError::NoSuchMethod
            | UpstreamError::Refused(_)
            | UpstreamError::Rejected(_)
            | UpstreamError::ShutDown => CallCode::UpstreamError,
        }
    }

    /// Returns how long programs wait before they call again: code-executor's values.
    pub(crate) fn pause_s(&self) -> Option<u64> {
        match self {
            UpstreamError::BreakerOpen { .. }
            | UpstreamError::BreakerProbing { .. }
            | UpstreamError::QueueTimeout { .. } => Some(30),
            UpstreamError::QueueFull { .. } => Some(60),
            UpstreamError::Start(_)
            | UpstreamError::RetryLater { .. }
            | UpstreamError::NeedsLogin { .. }
            | UpstreamError::Ended(_)
            | UpstreamError::Unreachable(_)
            | UpstreamError::Backlog
            | UpstreamError::Busy { .. }
            | UpstreamError::Timeout(_)
            | UpstreamError::ListMissing
            | UpstreamError::Outdated
            | UpstreamError::NoSuchMethod
            | UpstreamError::Refused(_)
            | UpstreamError::Rejected(_)
            | UpstreamError::ShutDown => None,
        }
    }

    /// Returns what the error says about the server's health.
    pub(super) fn verdict(&self) -> CallVerdict {
        match self {
            UpstreamError::Ended(_) | UpstreamError::Timeout(_) | UpstreamError::Unreachable(_) => {
                CallVerdict::Failed
            }
            UpstreamError::Busy { retry_after } => CallVerdict::Busy(*retry_after),
            UpstreamError::NoSuchMethod
            | UpstreamError::Refused(_)
            | UpstreamError::Rejected(_)
            | UpstreamError::NeedsLogin { .. } => CallVerdict::Answered,
            // Failed starts have their own retry delay; the others never reached the server.
            UpstreamError::Start(_)
            | UpstreamError::RetryLater { .. }
            | UpstreamError::BreakerOpen { .. }
            | UpstreamError::BreakerProbing { .. }
            | UpstreamError::QueueFull { .. }
            | UpstreamError::QueueTimeout { .. }
            | UpstreamError::Backlog
            | UpstreamError::ListMissing
            | UpstreamError::Outdated
            | UpstreamError::ShutDown => CallVerdict::Unknown,
        }
    }
}

/// Rounds up to whole seconds, at least one, so that a retry is never too early.
pub(super) fn round_up_seconds(left: Duration) -> u64 {
    (left.as_secs() + u64::from(left.subsec_nanos() > 0)).max(1)
}

impl FailedStart {
    /// `before` is the number of failed starts in a row before this one.
    pub(super) fn new(error: UpstreamError, before: u32) -> FailedStart {
        let retry_after = FIRST_RETRY.saturating_mul(1 << before.min(5)).min(LONGEST_RETRY);
        FailedStart { error, at: Instant::now(), retry_after }
    }

    /// Returns true if it is time to retry.
    pub(super) fn is_retry_due(&self) -> bool {
        self.at.elapsed() >= self.retry_after
    }

    pub(super) fn error_for_caller(&self) -> UpstreamError {
        let ago = self.at.elapsed();
        let left = self.retry_after.saturating_sub(ago);
        // Callers that waited for this very start get the original error.
        if ago < Duration::from_millis(100) {
            return self.error.clone();
        }
        let reason = match &self.error {
            UpstreamError::Start(reason) => reason.clone(),
            other => other.to_string(),
        };
        UpstreamError::RetryLater { reason, ago_s: ago.as_secs(), retry_s: round_up_seconds(left) }
    }
}
