//! The request of a client that calls a tool, and how toolsets answer it.

use std::sync::Arc;
use std::time::Instant;

use codexec_telemetry::TraceContext;
use codexec_types::{CallError, Json, RequestOrigin};
use rmcp::RoleServer;
use rmcp::model::JsonObject;
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::direct;
use super::pending_call::{self, CallOutcome, PendingCall, ProgressSource};
use crate::progress::follow_calls;
use crate::{App, Client, Connection, Progress};

/// Maximum number of queued progress messages; further ones are dropped.
const MAX_QUEUED_PROGRESS: usize = 64;

/// The names of clients that drop the text of a result with structured content: Claude Code, Codex,
/// VS Code.
const STRUCTURED_ONLY: [&str; 3] = ["claude-code", "codex-mcp-client", "Visual Studio Code"];

/// A client's request to call a tool, and the app that answers it.
pub struct ToolRequest<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) connection: &'a Arc<Connection>,
    pub(super) context: &'a RequestContext<RoleServer>,
    /// The time at which the client connected.
    pub connected_at: Instant,
}

impl ToolRequest<'_> {
    /// Runs the call in its own task, so that a client that disconnects cancels by token and never
    /// by drop.
    pub fn start<F: Future<Output = CallOutcome> + Send + 'static>(
        &self,
        work: impl FnOnce(Arc<App>, Client) -> F,
    ) -> PendingCall {
        let progress = watch::Sender::new(Progress::default());
        let updates = progress.subscribe();
        let (caller, questions) = pending_call::create_caller(self.context);
        let trace = self.trace();
        let caller = caller.follow_calls(follow_calls(&progress)).in_trace(trace);
        let cancel = CancellationToken::new();
        let client = Client {
            caller,
            cancel: cancel.clone(),
            progress,
            trace,
            context: read_origin(self.context),
            ..Client::new(Arc::clone(self.connection))
        };
        let running = tokio::spawn(work(Arc::clone(self.app), client));
        let mut call =
            PendingCall::new(running, cancel, ProgressSource::execution(updates), questions);
        call.names_servers = true;
        call
    }

    /// Calls an upstream tool in its own task; `to_outcome` gets its name and its result.
    pub fn start_upstream(
        &self,
        name: String,
        arguments: JsonObject,
        to_outcome: fn(&str, Result<Value, CallError>) -> CallOutcome,
    ) -> PendingCall {
        let (caller, questions) = pending_call::create_caller(self.context);
        let (sender, progress) = mpsc::channel(MAX_QUEUED_PROGRESS);
        let caller = caller.on_progress(Arc::new(move |progress| {
            // A slow client misses some progress messages, nothing else.
            let _ = sender.try_send(progress);
        }));
        let caller = caller.in_trace(self.trace());
        let (app, connection) = (Arc::clone(self.app), Arc::clone(self.connection));
        let cancel = CancellationToken::new();
        let token = cancel.clone();
        let running = tokio::spawn(async move {
            let gateway = app.gateway.on_behalf_of(caller);
            let arguments = Json::from_value(&Value::Object(arguments));
            let policy = connection.policy();
            let called = gateway.call_direct_tool(&name, &arguments, &policy.tools);
            tokio::select! {
                called = called => to_outcome(&name, called),
                // Dropping the call cancels it at the server.
                () = token.cancelled() => to_outcome(&name, Err(direct::cancelled())),
            }
        });
        PendingCall::new(running, cancel, ProgressSource::Upstream(progress), questions)
    }

    /// Returns true if the client is known to show its model the structured content of a result
    /// and nothing else. Other clients may show only the text.
    pub fn shows_structured_only(&self) -> bool {
        let client = self.context.client_info();
        client
            .is_some_and(|client| STRUCTURED_ONLY.iter().any(|name| client.name.starts_with(name)))
    }

    /// Returns the span of this call.
    fn trace(&self) -> Option<TraceContext> {
        self.context.extensions.get().copied()
    }

    /// Returns the client's end of the connection, for notifications.
    pub(super) fn peer(&self) -> Peer<RoleServer> {
        self.context.peer.clone()
    }
}

/// Reads from the request's `_meta` who is behind it.
fn read_origin(context: &RequestContext<RoleServer>) -> RequestOrigin {
    const MAX_CHARS: usize = 200;
    let word = |names: &[&str]| {
        let value = names.iter().find_map(|name| context.meta.0.get(*name))?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(text.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect())
    };
    RequestOrigin {
        agent_id: word(&["agent_id", "agentId", "codexec/agent_id"]),
        trace_id: word(&["trace_id", "traceId", "codexec/trace_id", "traceparent"]),
        chat_id: word(&["chat_id", "chatId", "codexec/chat_id", "conversation_id"]),
    }
}
