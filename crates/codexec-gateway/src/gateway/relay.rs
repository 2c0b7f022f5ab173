//! A relay: one server passed through, with its own names, prompts, resources and questions, over a
//! connection that only one identity uses.

use std::sync::Arc;

use codexec_types::{CallCode, CallError, Json, ServerName, ToolFilter, clean_text, cut_text};
use rmcp::model::{MetaObject, RequestMetaObject};
use serde_json::{Map, Value, json};
use tokio::sync::{broadcast, watch};

use super::{
    DirectTool, Gateway, RoundInput,
    call::upstream_error,
    direct::build_definition,
    resources::clean_texts,
    rounds::{Rounds, read_questions},
};
use crate::{
    Caller, QuestionSupport, RpcError,
    change_signal::ChangeSignal,
    upstream::{ServerNotice, UpstreamError, UpstreamShared},
};

/// The limit on notifications that wait for a slow client; it misses older ones.
const MAX_NOTICES: usize = 256;

/// A server that is passed through. Dropping the relay ends its connection.
///
/// THREAT[HTTP-16]: a server cannot say which of its calls a question or a log message belongs to,
/// so every identity has its own connection.
pub struct Relay {
    gateway: Gateway,
    server: ServerName,
    notices: broadcast::Sender<ServerNotice>,
}

/// The parts of a request that come from the client of a relay.
#[derive(Clone, Debug, Default)]
pub struct RelayCall {
    /// Fields of `_meta` for servers without a handshake.
    pub meta: Map<String, Value>,
    /// The answers to questions of an earlier round.
    pub input: RoundInput,
}

/// A request other than a tool call.
pub struct RelayRequest {
    pub method: &'static str,
    pub params: Map<String, Value>,
    pub call: RelayCall,
}

/// Why a relayed request failed.
#[derive(Debug)]
pub enum RelayError {
    /// codexec did not pass it on, or got no answer.
    Refused(CallError),
    /// The server answered with an error.
    Rejected { tool: String, error: Box<RpcError> },
}

impl RelayError {
    pub(super) fn rejected(tool: &str, error: RpcError) -> RelayError {
        RelayError::Rejected { tool: tool.to_owned(), error: Box::new(error) }
    }
}

impl From<CallError> for RelayError {
    fn from(error: CallError) -> RelayError {
        RelayError::Refused(error)
    }
}

impl RelayCall {
    pub(super) fn meta(&self) -> Option<RequestMetaObject> {
        (!self.meta.is_empty()).then(|| RequestMetaObject(MetaObject(self.meta.clone())))
    }
}

impl Gateway {
    /// Returns a relay to a configured server. Starts nothing.
    pub fn relay_to(&self, server: &ServerName) -> Option<Relay> {
        let config = self.upstream(server)?.config().clone();
        let notices = broadcast::Sender::new(MAX_NOTICES);
        let shared = UpstreamShared {
            list_changed: ChangeSignal::default(),
            notices: Some(notices.clone()),
            ..self.inner.shared.clone()
        };
        let observed = Arc::clone(&self.inner.observed);
        let gateway = Gateway::with_parts(vec![config], shared, observed);
        Some(Relay { gateway, server: server.clone(), notices })
    }
}

impl Relay {
    pub fn server(&self) -> &ServerName {
        &self.server
    }

    /// Returns true if the server's entry is still the same.
    pub fn is_current(&self, configured: &Gateway) -> bool {
        let (own, other) = (self.gateway.upstream(&self.server), configured.upstream(&self.server));
        own.zip(other).is_some_and(|(own, other)| own.config().is_same_server(other.config()))
    }

    /// Starts the server if needed. Returns the capabilities that it declares, and whether it
    /// speaks a protocol version without a handshake.
    pub async fn connect(&self) -> Result<(Value, bool), CallError> {
        let upstream = self.gateway.readable_upstream(&self.server).await?;
        let connected = upstream.connect().await;
        let connection = connected.map_err(|error| upstream_error(&self.server, &error))?;
        Ok((connection.capabilities(), connection.is_modern()))
    }

    /// Subscribes to the notifications that the server sends by itself.
    pub fn subscribe_notices(&self) -> broadcast::Receiver<ServerNotice> {
        self.notices.subscribe()
    }

    /// Subscribes to changes of the list of tools.
    pub fn subscribe_changes(&self) -> watch::Receiver<u64> {
        self.gateway.subscribe_changes()
    }

    /// Returns the tools that may be called, under their own names.
    pub async fn list_tools(&self, allowed: &ToolFilter) -> Vec<DirectTool> {
        let (catalogue, _) = self.gateway.gather_all_lists(allowed).await;
        let tools = catalogue.all(allowed).filter_map(|entry| {
            let name = entry.tool.name.clone();
            Some(DirectTool { definition: build_definition(entry, &name)?, name })
        });
        tools.collect()
    }

    /// Calls a tool by its own name. A caller that cannot answer gets questions as results.
    pub async fn call_tool(
        &self,
        caller: Caller,
        name: &str,
        args: &Json,
        call: RelayCall,
        (allowed, support): (&ToolFilter, QuestionSupport),
    ) -> Result<Value, RelayError> {
        let gateway = self.gateway.on_behalf_of(caller);
        let (_, result) = gateway.call_round(&self.server, name, args, allowed, call).await?;
        self.check_result(result, name, support)
    }

    /// Sends any other request.
    pub async fn request(
        &self,
        caller: &Caller,
        request: RelayRequest,
        support: QuestionSupport,
    ) -> Result<Value, RelayError> {
        let RelayRequest { method, params, call } = request;
        let upstream = self.gateway.readable_upstream(&self.server).await?;
        let mut rounds = Rounds::new(call.input.clone());
        let sent = loop {
            let mut params = params.clone();
            let input = std::mem::take(&mut rounds.input);
            if let Some(responses) = input.responses {
                params.insert("inputResponses".to_owned(), json!(responses));
            }
            if let Some(state) = input.state {
                params.insert("requestState".to_owned(), state.into());
            }
            let sent = upstream.ask_for(method, Value::Object(params), call.meta(), caller).await;
            let finished = match sent {
                Ok(result) => rounds.finish(&upstream, caller, result).await,
                Err(error) => Err(error),
            };
            if let Some(sent) = finished.transpose() {
                break sent;
            }
        };
        let mut result = sent.map_err(|error| self.to_relay_error(error, method))?;
        if method.ends_with("/list") {
            clean_texts(&mut result);
        }
        self.check_result(result, method, support)
    }

    fn to_relay_error(&self, error: UpstreamError, method: &str) -> RelayError {
        match error {
            UpstreamError::Rejected(error) => RelayError::rejected(method, error),
            UpstreamError::NoSuchMethod => {
                let why = format!("no method {method:?}");
                RelayError::rejected(method, RpcError::new(RpcError::METHOD_NOT_FOUND, &why))
            }
            other => RelayError::Refused(upstream_error(&self.server, &other)),
        }
    }

    /// Checks a result before a client gets it: its kind, its size, and its questions.
    fn check_result(
        &self,
        mut result: Value,
        what: &str,
        support: QuestionSupport,
    ) -> Result<Value, RelayError> {
        match result.get("resultType").and_then(Value::as_str) {
            Some("complete") | None => {}
            Some("input_required") => self.check_questions(&mut result, what, support)?,
            Some(other) => {
                let other = cut_text(&clean_text(other), 100);
                let message = format!(
                    "server \"{}\" answers {what:?} with {other:?}, which is not supported",
                    self.server
                );
                return Err(CallError::new(CallCode::UpstreamError, message).into());
            }
        }
        self.gateway.to_bounded_json(&result)?;
        Ok(result)
    }

    /// Checks the questions in a result like those that a server asks by itself.
    fn check_questions(
        &self,
        result: &mut Value,
        what: &str,
        support: QuestionSupport,
    ) -> Result<(), RelayError> {
        let questions = read_questions(result).map_err(|error| self.to_relay_error(error, what))?;
        for (key, kind, params) in questions.into_iter().flatten() {
            let Some(params) = support.prepare(kind, params) else {
                return Err(RelayError::rejected(what, RpcError::missing_capability(kind)));
            };
            let request = result.get_mut("inputRequests").and_then(|all| all.get_mut(&key));
            if let Some(request) = request {
                *request = json!({"method": kind.method(), "params": params});
            }
        }
        Ok(())
    }
}
