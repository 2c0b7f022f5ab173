//! Our client side of MCP: handles requests and notifications from an upstream.
#![expect(deprecated, reason = "to say that we have no roots, one has to name them")]

use rmcp::{
    ErrorData, RoleClient,
    handler::client::ClientHandler,
    model::{
        ClientCapabilities, ClientConfig, CustomRequest, CustomResult, ElicitRequestParams,
        ElicitResult, ElicitationAction, ElicitationCapability, ErrorCode,
        FormElicitationCapability, Implementation, ListRootsResult, NumberOrString,
        ProgressNotificationParam, ProgressToken, ProtocolVersion, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::{Map, Value};

use super::{connection::ServerEvents, progress::CallProgress};

/// A client that makes calls, and forwards questions to the caller. It declares neither sampling
/// nor roots: both are deprecated, and the client behind us may not support them.
pub(super) struct UpstreamClient {
    pub(super) server_events: ServerEvents,
}

impl UpstreamClient {
    async fn ask(&self, params: Value, context: &RequestContext<RoleClient>) -> Value {
        let params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        tokio::select! {
            answer = self.server_events.callers.ask(params) => answer,
            () = context.ct.cancelled() => crate::caller::cancel_result(),
        }
    }
}

impl ClientHandler for UpstreamClient {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("codexec", env!("CARGO_PKG_VERSION"));
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.server_events.changes.record();
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let ProgressToken(NumberOrString::Number(token)) = params.progress_token else { return };
        let progress = CallProgress::new(params.progress, params.total, params.message.as_deref());
        self.server_events.progress.notify(token, progress);
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let params = serde_json::to_value(request).unwrap_or_default();
        let answer = self.ask(params, &context).await;
        Ok(serde_json::from_value(answer)
            .unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel)))
    }

    /// Handles requests that rmcp cannot parse, such as a form with newer kinds of fields.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "elicitation/create" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let params = request.params.unwrap_or_default();
        Ok(CustomResult(self.ask(params, &context).await))
    }

    /// rmcp would answer with an empty list, as if we had declared roots.
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "roots/list", None))
    }
}
