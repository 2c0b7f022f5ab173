//! How the requests of one client are passed on.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ConstString, JsonObject, ServerCapabilities,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::calls::{Continuation, META_LOG_LEVEL, Relayed};
use super::notices::{LogForwarding, LogLevel};
use super::server::RelayServer;
use crate::mcp::raw_result::is_modern;

impl RelayServer {
    /// Passes a request on, and sends its result as it is.
    pub(super) async fn pass<P: serde::Serialize>(
        &self,
        method: &'static str,
        params: &P,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut params = match serde_json::to_value(params) {
            Ok(Value::Object(params)) => params,
            Ok(_) | Err(_) => JsonObject::new(),
        };
        params.remove("_meta");
        let responses = params.remove("inputResponses");
        let continuation = Continuation {
            responses: responses.and_then(|all| serde_json::from_value(all).ok()),
            state: params.remove("requestState").and_then(|it| it.as_str().map(str::to_owned)),
        };
        let relayed = Relayed::Other { method, params };
        self.drive(relayed, continuation, None, context).await?;
        Ok(())
    }

    pub(super) async fn drive(
        &self,
        relayed: Relayed,
        continuation: Continuation,
        parked: Option<&CallToolRequestParams>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let level = self.wishes.level().map(|level| level.name().into());
        let is_call = parked.is_some();
        let unnamed = CallToolRequestParams::new("");
        let request = parked.unwrap_or(&unnamed);
        let is_continued = is_call && request.request_state.is_some();
        let call = match is_continued && !self.target.link()?.is_modern {
            true => self.target.parked_calls.take(request)?,
            false => self.target.begin(relayed, continuation, level.as_ref(), context)?,
        };
        // Clients with a session get log messages whenever they come.
        let wanted = context.meta.0.get(META_LOG_LEVEL).filter(|_| is_modern(context));
        let wanted = wanted.and_then(Value::as_str).and_then(LogLevel::parse);
        let notices = self.target.link()?.relay.subscribe_notices();
        let logs = wanted.map(|level| LogForwarding::start(notices, level, context.peer.clone()));
        let driven = call.drive(request, context, &self.target.parked_calls).await;
        if let Some(logs) = logs {
            logs.finish().await;
        }
        driven
    }

    /// Fails if the server does not declare the capability.
    pub(super) fn require<M: ConstString + Default>(
        &self,
        has: impl FnOnce(&ServerCapabilities) -> bool,
    ) -> Result<(), ErrorData> {
        match has(&self.target.capabilities()) {
            true => Ok(()),
            false => Err(ErrorData::method_not_found::<M>()),
        }
    }

    pub(super) async fn unsubscribe_from(&self, uri: &str) -> Result<(), ErrorData> {
        if self.wishes.remove_resource(uri) && self.target.subscribers.remove(uri) {
            self.target.ask("resources/unsubscribe", "uri", uri.into()).await?;
        }
        Ok(())
    }
}
