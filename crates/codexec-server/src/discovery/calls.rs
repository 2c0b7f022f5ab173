//! Tool calls under the rules of discovery: counted for each client, and reported.

use std::time::{Duration, Instant};

use codexec_types::{Ask, CallCode, CallError, ExecutionId, Identity};

use super::DiscoveryRules;
use super::rate_limit::WINDOW;

/// A tool call that was answered or refused. The arguments are not part of it.
pub struct ReportedCall {
    pub execution: ExecutionId,
    /// The client's name for records.
    pub client: String,
    /// The server, or an empty string if it is a part of the name.
    pub server: String,
    /// The tool, as the code named it.
    pub tool: String,
    /// The error's code, if the call failed.
    pub error: Option<&'static str>,
    pub duration: Duration,
}

/// A call that the rate limit refuses.
pub(crate) struct RefusedCall {
    pub(crate) error: CallError,
    /// True for the first refusal after an accepted call. The following ones are not reported.
    pub(crate) is_first: bool,
}

impl DiscoveryRules {
    /// Counts a call.
    pub(crate) fn count_call(&self, client: &Identity) -> Result<(), RefusedCall> {
        let counted = self.call_limit.count(client, self.max_requests, Instant::now());
        counted.map_err(|refused| RefusedCall {
            error: rate_limit_error("tool calls", self.max_requests, refused.wait),
            is_first: refused.is_first,
        })
    }

    /// Reports a call to the observer, if there is one.
    pub(crate) async fn report_call(&self, call: impl FnOnce() -> ReportedCall) {
        if let Some(on_call) = &self.observers.call {
            on_call(call()).await;
        }
    }
}

/// Returns the server and the tool of a call, as the code named them.
pub(crate) fn name_call(ask: &Ask) -> (String, String) {
    let (server, tool, _) = crate::answers::describe_call(ask);
    (server.to_owned(), tool.to_owned())
}

pub(super) fn rate_limit_error(what: &str, most: usize, wait: Duration) -> CallError {
    let (window, seconds) = (WINDOW.as_secs(), wait.as_secs() + 1);
    let message = format!(
        "Rate limit exceeded: at most {most} {what} in {window} s; try again in {seconds} s, or \
         keep what earlier ones gave"
    );
    CallError::new(CallCode::RateLimited, message)
}
