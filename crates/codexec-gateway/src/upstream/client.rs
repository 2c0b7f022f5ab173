//! Our client side of MCP: handles requests and notifications from an upstream.
#![expect(deprecated, reason = "sampling and roots are deprecated, and still relayed")]

use rmcp::{
    ErrorData, RoleClient,
    handler::client::ClientHandler,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationCapability, ErrorCode, FormElicitationCapability, Implementation,
        ListRootsResult, NumberOrString, ProgressNotificationParam, ProgressToken, ProtocolVersion,
        RootsCapabilities, SamplingCapability, UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::{Map, Value};

use super::{progress::CallProgress, server_events::ServerEvents};
use crate::QuestionKind;

/// A client that makes calls, and forwards questions to the caller. It declares sampling and roots
/// only for a relay: both are deprecated, and the client behind us may not support them.
pub(super) struct UpstreamClient {
    pub(super) server_events: ServerEvents,
}

impl UpstreamClient {
    async fn ask(
        &self,
        kind: QuestionKind,
        params: Value,
        context: &RequestContext<RoleClient>,
    ) -> Result<Value, ErrorData> {
        if kind != QuestionKind::Elicitation && !self.is_relay() {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, kind.method(), None));
        }
        let params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        let answer = tokio::select! {
            answer = self.server_events.callers.ask(kind, params) => answer,
            () = context.ct.cancelled() => crate::caller::cancel(kind),
        };
        answer.map_err(|error| ErrorData::new(ErrorCode(error.code), error.message, error.data))
    }

    fn is_relay(&self) -> bool {
        self.server_events.notices.is_some()
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
        if self.is_relay() {
            capabilities.sampling = Some(SamplingCapability::default());
            capabilities.roots = Some(RootsCapabilities::default());
        }
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
        let answer = self.ask(QuestionKind::Elicitation, params, &context).await?;
        Ok(serde_json::from_value(answer)
            .unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel)))
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let params = serde_json::to_value(request).unwrap_or_default();
        let answer = self.ask(QuestionKind::Sampling, params, &context).await?;
        serde_json::from_value(answer).map_err(|_| invalid_answer())
    }

    /// rmcp would answer with an empty list, as if we had declared roots.
    async fn list_roots(
        &self,
        context: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let answer = self.ask(QuestionKind::Roots, Value::Null, &context).await?;
        serde_json::from_value(answer).map_err(|_| invalid_answer())
    }

    /// Handles requests that rmcp cannot parse, such as a form with newer kinds of fields.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        let Some(kind) = QuestionKind::from_method(&request.method) else {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        };
        let params = request.params.unwrap_or_default();
        Ok(CustomResult(self.ask(kind, params, &context).await?))
    }
}

fn invalid_answer() -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, "the client's answer is not valid", None)
}
