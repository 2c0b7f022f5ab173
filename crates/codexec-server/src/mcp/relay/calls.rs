//! Requests that are passed on, and their results.

use std::sync::Arc;

use codexec_gateway::{Caller, QuestionSupport, RelayCall, RelayError, RelayRequest, RoundInput};
use codexec_types::{CallCode, CallError, Json};
use rmcp::model::{ErrorCode, InputResponses, JsonObject};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{RelayLink, RelayTarget};
use crate::mcp::direct;
use crate::mcp::pending_call::{
    CallOutcome, PendingCall, ProgressSource, create_caller_with, read_support,
};
use crate::mcp::raw_result::is_modern;

const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The fields of `_meta` that are passed on as they are.
const PASSED_META: [&str; 4] = [META_LOG_LEVEL, "traceparent", "tracestate", "baggage"];
/// Maximum number of queued progress messages; further ones are dropped.
const MAX_QUEUED_PROGRESS: usize = 64;

/// A request to pass on.
#[derive(Clone)]
pub(super) enum Relayed {
    Tool { name: String, arguments: JsonObject },
    Other { method: &'static str, params: JsonObject },
}

/// The parts of a request that continue an earlier one.
#[derive(Default)]
pub(super) struct Continuation {
    pub(super) responses: Option<InputResponses>,
    pub(super) state: Option<String>,
}

impl Relayed {
    /// Returns what a continued request must repeat.
    fn key(&self) -> Value {
        match self {
            Relayed::Tool { name, arguments } => json!(["tools/call", name, arguments]),
            Relayed::Other { method, params } => json!([method, params]),
        }
    }
}

impl RelayTarget {
    /// Starts a request in its own task, so that a client that disconnects cancels by token and
    /// never by drop.
    pub(super) fn begin(
        self: &Arc<Self>,
        relayed: Relayed,
        continuation: Continuation,
        level: Option<&Value>,
        context: &RequestContext<RoleServer>,
    ) -> Result<PendingCall, ErrorData> {
        let link = self.link()?;
        let support = read_support(context);
        // A server of the newer era returns its questions by itself. Only tool calls can wait for
        // the answers of a client without a session.
        let is_asked = match (is_modern(context), link.is_modern) {
            (false, _) => true,
            (true, true) => false,
            (true, false) => matches!(relayed, Relayed::Tool { .. }),
        };
        let asked = if is_asked { support } else { QuestionSupport::default() };
        let (caller, questions) = create_caller_with(asked);
        let (sender, progress) = mpsc::channel(MAX_QUEUED_PROGRESS);
        let caller = caller.on_progress(Arc::new(move |progress| {
            // A slow client misses some progress messages, nothing else.
            let _ = sender.try_send(progress);
        }));
        let key = relayed.key();
        let state = continuation.state.map(|state| self.states.open(&state, &key)).transpose()?;
        let input = RoundInput { responses: continuation.responses, state };
        let call = RelayCall { meta: read_meta(context, level), input };
        let (target, cancel) = (Arc::clone(self), CancellationToken::new());
        let token = cancel.clone();
        let running = tokio::spawn(async move {
            let sent = target.send(&link, relayed, (caller, call, support));
            tokio::select! {
                outcome = sent => target.seal_state(outcome, key),
                // Dropping the request cancels it at the server.
                () = token.cancelled() => direct::error_outcome(&direct::cancelled()),
            }
        });
        Ok(PendingCall::new(running, cancel, ProgressSource::Upstream(progress), questions))
    }

    async fn send(
        &self,
        link: &RelayLink,
        relayed: Relayed,
        (caller, call, support): (Caller, RelayCall, QuestionSupport),
    ) -> CallOutcome {
        match relayed {
            Relayed::Tool { name, arguments } => {
                let args = Json::from_value(&Value::Object(arguments));
                let policy = self.connection.policy();
                let rules = (&policy.tools, support);
                match link.relay.call_tool(caller, &name, &args, call, rules).await {
                    Ok(result) => CallOutcome::Upstream(result),
                    Err(RelayError::Refused(error)) => direct::to_outcome(&name, Err(error)),
                    Err(error) => CallOutcome::Refused(to_error(error)),
                }
            }
            Relayed::Other { method, params } => {
                let request = RelayRequest { method, params, call };
                match link.relay.request(&caller, request, support).await {
                    Ok(result) => CallOutcome::Upstream(result),
                    Err(error) => CallOutcome::Refused(to_error(error)),
                }
            }
        }
    }

    /// Replaces a server's state, so that a client can only send it back.
    fn seal_state(&self, outcome: CallOutcome, key: Value) -> CallOutcome {
        let CallOutcome::Upstream(mut result) = outcome else { return outcome };
        let state = result.get_mut("requestState").map(Value::take);
        if let Some(Value::String(state)) = state {
            match self.states.seal(state, key) {
                Ok(sealed) => {
                    if let Some(slot) = result.get_mut("requestState") {
                        *slot = sealed.into();
                    }
                }
                Err(error) => return CallOutcome::Refused(error),
            }
        }
        CallOutcome::Upstream(result)
    }
}

/// Returns the fields of `_meta` for a server without a handshake: what the client declares, and
/// what belongs to its request.
fn read_meta(context: &RequestContext<RoleServer>, level: Option<&Value>) -> Map<String, Value> {
    let declared = context.client_capabilities().unwrap_or_default();
    let declared = serde_json::to_value(declared).unwrap_or_default();
    let mut capabilities = Map::new();
    for name in ["elicitation", "sampling", "roots"] {
        if let Some(capability) = declared.get(name) {
            capabilities.insert(name.to_owned(), capability.clone());
        }
    }
    let mut meta = Map::new();
    meta.insert(META_CAPABILITIES.to_owned(), Value::Object(capabilities));
    if let Some(level) = level {
        meta.insert(META_LOG_LEVEL.to_owned(), level.clone());
    }
    for name in PASSED_META {
        if let Some(value) = context.meta.0.get(name) {
            meta.insert(name.to_owned(), value.clone());
        }
    }
    meta
}

/// Returns the error for a request other than a tool call.
pub(super) fn to_error(error: RelayError) -> ErrorData {
    match error {
        RelayError::Rejected { error, .. } => {
            ErrorData::new(ErrorCode(error.code), error.message, error.data)
        }
        RelayError::Refused(error) => refusal(&error),
    }
}

fn refusal(error: &CallError) -> ErrorData {
    let code = match error.code {
        CallCode::ToolNotFound | CallCode::InvalidArgs => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, error.message.clone(), None)
}
