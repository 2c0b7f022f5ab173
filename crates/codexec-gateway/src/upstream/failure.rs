//! Why a request to a server failed, and when to retry.

use std::time::Duration;

use tokio::time::Instant;

use super::breaker::Verdict;

/// The first retry delay, and the minimum time between two starts.
pub(super) const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// A failed start.
pub(crate) struct Failure {
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
    Waiting { reason: String, ago_s: u64, retry_s: u64 },
    #[error("{why}; log in with `codexec servers login {server}`")]
    NeedsLogin { why: String, server: String },
    #[error("it ended ({0})")]
    Ended(String),
    #[error("it could not be asked: {0}")]
    Unreachable(String),
    #[error("it does not read what it is sent, and no more can wait for it; try again later")]
    Backlog,
    #[error("it is busy and asks to be left alone; try again in {} s", seconds(*.retry_after))]
    Busy { retry_after: Duration },
    #[error("it failed {failures} times in a row, at last: {reason}; try again in {retry_s} s")]
    Broken { failures: u32, reason: String, retry_s: u64 },
    #[error("it failed before ({reason}) and is just being tried again; try again in {retry_s} s")]
    Probed { reason: String, retry_s: u64 },
    #[error("{under_way} calls are under way and {waiting} more wait; try again in {retry_s} s")]
    Crowded { under_way: usize, waiting: usize, retry_s: u64 },
    #[error(
        "{under_way} calls are under way, and none of them ended in the {waited_s} s that this one \
         waited; try again in {retry_s} s"
    )]
    Stuck { under_way: usize, waited_s: u64, retry_s: u64 },
    #[error("no answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    #[error("it says that its tools have changed, and does not list them")]
    Unlisted,
    #[error("the tool's definition has changed while the call waited; try again")]
    Outdated,
    #[error("it does not know the method")]
    NoSuchMethod,
    #[error("{0}")]
    Refused(String),
    #[error("the gateway is shutting down")]
    ShutDown,
}

impl UpstreamError {
    /// Returns what the error says about the server's health.
    pub(super) fn verdict(&self) -> Verdict {
        match self {
            UpstreamError::Ended(_) | UpstreamError::Timeout(_) | UpstreamError::Unreachable(_) => {
                Verdict::Failed
            }
            UpstreamError::Busy { retry_after } => Verdict::Busy(*retry_after),
            UpstreamError::NoSuchMethod
            | UpstreamError::Refused(_)
            | UpstreamError::NeedsLogin { .. } => Verdict::Answered,
            // Failed starts have their own retry delay; the others never reached the server.
            UpstreamError::Start(_)
            | UpstreamError::Waiting { .. }
            | UpstreamError::Broken { .. }
            | UpstreamError::Probed { .. }
            | UpstreamError::Crowded { .. }
            | UpstreamError::Stuck { .. }
            | UpstreamError::Backlog
            | UpstreamError::Unlisted
            | UpstreamError::Outdated
            | UpstreamError::ShutDown => Verdict::Unknown,
        }
    }
}

/// Rounds up to whole seconds, at least one, so that a retry is never too early.
pub(super) fn seconds(left: Duration) -> u64 {
    (left.as_secs() + u64::from(left.subsec_nanos() > 0)).max(1)
}

impl Failure {
    /// `before` is the number of failed starts in a row before this one.
    pub(super) fn new(error: UpstreamError, before: u32) -> Failure {
        let retry_after = FIRST_RETRY.saturating_mul(1 << before.min(5)).min(LAST_RETRY);
        Failure { error, at: Instant::now(), retry_after }
    }

    /// Returns true if it is time to retry.
    pub(super) fn is_over(&self) -> bool {
        self.at.elapsed() >= self.retry_after
    }

    pub(super) fn for_caller(&self) -> UpstreamError {
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
        UpstreamError::Waiting { reason, ago_s: ago.as_secs(), retry_s: seconds(left) }
    }
}
