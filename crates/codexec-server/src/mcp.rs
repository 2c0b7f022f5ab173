//! The MCP edge: parses a request, makes one call, formats the result. The SDK's types stay in this
//! folder and in toolsets. Every toolset, also codexec's own, is a [`Toolset`].

mod codexec;
mod direct;
mod execute_code;
mod health;
mod http;
mod instructions;
mod own_toolsets;
mod pending_call;
mod raw_result;
mod relay;
mod resource;
mod search_tools;
mod stdio;
mod tool;
mod tool_request;
mod toolset;
mod toolset_names;

use std::sync::Arc;
use std::time::Instant;

use codexec_telemetry::{Span, SpanKind, TraceContext};
use codexec_types::Image;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, Implementation, JsonObject, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SubscriptionFilter,
};
use rmcp::service::{NotificationContext, QuitReason, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::direct::error_outcome;
use self::direct::{KnownList, ListChangeDetector, ToolListSource};
pub use self::execute_code::execution_meta;
pub use self::health::{is_healthy, report as health_report};
pub use self::http::{HttpBody, McpEndpoint, stream_events};
pub use self::own_toolsets::{CodexecTools, CompactTools, DirectTools};
use self::pending_call::ParkedCalls;
pub use self::pending_call::{CallOutcome, PendingCall};
pub use self::resource::link_files;
pub use self::tool::tool;
pub use self::tool_request::ToolRequest;
pub use self::toolset::{ChangingTools, Toolset, Toolsets};
pub use self::toolset_names::{InvalidToolset, ToolsetNames};
use crate::{App, Connection, ToolReply};

/// The toolsets' own tools never change while the server runs.
const TOOLS_TTL_MS: u64 = 24 * 60 * 60 * 1_000;
/// Scripts that are exposed as tools come and go.
const SCRIPTS_TTL_MS: u64 = 60 * 1_000;

/// The connection of one client.
#[derive(Clone)]
pub struct McpServer {
    app: Arc<App>,
    connected_at: Instant,
    connection: Arc<Connection>,
    parked_calls: ParkedCalls,
    known_list: KnownList,
    /// Cancelled when the client has disconnected.
    disconnected: CancellationToken,
}

/// Serves one client over stdin and stdout until it disconnects or `stop` is cancelled. Cancels
/// `answered` after the handshake.
pub async fn serve_stdio(
    app: Arc<App>,
    connection: Arc<Connection>,
    stop: CancellationToken,
    answered: CancellationToken,
) -> Result<(), ServeError> {
    let disconnected = CancellationToken::new();
    let _guard = disconnected.clone().drop_guard();
    // THREAT[RES-10]: the SDK waits for running calls after the end of its input; guests must not
    // keep running for a client that has disconnected.
    let (stopped, token) = (Arc::clone(&connection), disconnected.clone());
    tokio::spawn(async move {
        token.cancelled().await;
        stopped.stop_executions();
    });
    let transport = stdio::ClientPipe::open(disconnected.clone());
    let (gateway, tools) = (app.gateway.clone(), connection.policy().tools.clone());
    let server = McpServer {
        app,
        connected_at: Instant::now(),
        connection,
        parked_calls: ParkedCalls::default(),
        known_list: KnownList::default(),
        disconnected,
    };
    let running = match raw_result::RawServer(server).serve_with_ct(transport, stop).await {
        Ok(running) => running,
        // Disconnecting before the handshake is not an error.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(rmcp::service::ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(ServeError::Handshake(Box::new(error))),
    };
    answered.cancel();
    // Searches answer with what is known, so begin to know.
    gateway.start_unlisted(&tools);
    drop(gateway);
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Broken(error)),
        Ok(_) => Ok(()),
    }
}

/// Returns how many tools an agent sees, and how many characters of JSON they take.
pub fn measure_tool_list() -> (usize, usize) {
    let tools = tool::compact();
    let listed = serde_json::to_string(&tools).unwrap_or_default();
    (tools.len(), listed.chars().count())
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("MCP handshake with the client failed")]
    Handshake(#[source] Box<rmcp::service::ServerInitializeError>),
    #[error("internal error: the task that serves the connection failed")]
    Broken(#[source] tokio::task::JoinError),
}

impl McpServer {
    /// Starts a tool call.
    fn begin(
        &self,
        name: &str,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<PendingCall, ErrorData> {
        let Some(toolset) = self.connection.toolsets().find(name) else {
            return Err(ErrorData::invalid_params(self.unknown_tool_message(name), None));
        };
        if self.connection.is_read_only() && !self.connection.toolsets().only_reads(name) {
            let message = format!("this token may only read, and {name:?} may change something");
            return Err(ErrorData::invalid_params(message, None));
        }
        let request = ToolRequest {
            app: &self.app,
            connection: &self.connection,
            context,
            connected_at: self.connected_at,
        };
        Ok(toolset.begin(name, arguments, &request))
    }

    fn tool_list(&self) -> ToolListSource {
        ToolListSource::Direct(Arc::clone(&self.app), Arc::clone(&self.connection))
    }

    /// Starts the span of a tool call, below the one that the client names. What the call does
    /// finds its parent in the context.
    fn start_span(&self, name: &str, context: &mut RequestContext<RoleServer>) -> Span {
        let parent = context.meta.get("traceparent").and_then(Value::as_str);
        let parent = parent.and_then(TraceContext::parse);
        let mut span = self.app.tracer.start(SpanKind::Server, "tools/call", parent);
        span.set("mcp.method.name", "tools/call");
        if self.connection.toolsets().find(name).is_some() {
            span.set("gen_ai.tool.name", name);
        }
        if let Some(parent) = span.context() {
            context.extensions.insert(parent);
        }
        span
    }

    fn unknown_tool_message(&self, name: &str) -> String {
        let name: String = name.chars().take(200).collect();
        if !self.connection.toolsets().is_compact() {
            return format!("there is no tool {name:?} here; tools/list has all there are");
        }
        format!(
            "there is no tool {name:?} here; there are execute_code, search_tools, health, and \
             inside execute_code `tools.<server>.<tool>(..)`"
        )
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities =
            ServerCapabilities::builder().enable_tools().enable_resources().build();
        if let Some(tools) = &mut capabilities.tools
            && self.connection.toolsets().may_change()
        {
            tools.list_changed = Some(true);
        }
        let mut servers = self.app.gateway.server_names();
        servers.retain(|name| self.connection.sees_server(name.as_str()));
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("codexec", env!("CARGO_PKG_VERSION")).with_title("codexec"),
            )
            .with_instructions(self.connection.toolsets().instructions(&servers))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut own = self.connection.toolsets().tools();
        if self.connection.toolsets().has(ChangingTools::Scripts) {
            let mut scripts = self.app.scripts.list_exposed().await.unwrap_or_default();
            if let Some(owner) = self.connection.script_owner() {
                scripts.retain(|script| script.is_saved_by(owner));
            }
            own.extend(codexec::script_tools(&scripts));
        }
        if self.connection.toolsets().has(ChangingTools::Upstreams) {
            let own = own.iter().filter_map(|tool| serde_json::to_value(tool).ok()).collect();
            let list =
                direct::list(&self.app, &self.connection, own, request, &self.known_list, &context)
                    .await?;
            raw_result::replace_result(&context, list);
            return Ok(ListToolsResult::default());
        }
        let mut list = ListToolsResult::with_all_items(own);
        let may_change = self.connection.toolsets().may_change();
        list.ttl_ms = Some(if may_change { SCRIPTS_TTL_MS } else { TOOLS_TTL_MS });
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _span = self.start_span(&request.name, &mut context);
        let call = match &request.request_state {
            Some(_) => self.parked_calls.take(&request)?,
            None => {
                let arguments = request.arguments.clone().unwrap_or_default();
                self.begin(&request.name, arguments, &context)?
            }
        };
        call.drive(&request, &context, &self.parked_calls).await
    }

    /// Notifies a client with a handshake of changes of the tool list from here on.
    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if !self.connection.toolsets().has(ChangingTools::Upstreams) {
            return;
        }
        let (mut changes, disconnected) = (
            ListChangeDetector::new(self.tool_list(), &self.known_list),
            self.disconnected.clone(),
        );
        tokio::spawn(disconnected.run_until_cancelled_owned(async move {
            while changes.next().await && context.peer.notify_tool_list_changed().await.is_ok() {}
        }));
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.connection.toolsets().has(ChangingTools::Upstreams).then(|| requested.clone())
    }

    /// Notifies a client without a handshake of such changes, as long as its subscription lasts.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = ListChangeDetector::subscribe(self.tool_list()).await;
        loop {
            let needs_notification = tokio::select! {
                needs_notification = changes.next() => needs_notification,
                () = context.cancelled() => false,
            };
            if !needs_notification || context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }

    /// Answers malformed tool calls, which the SDK passes on as custom requests.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "tools/call" {
            let message = format!("there is no method {:?} here", request.method);
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None));
        }
        let params = request.params.unwrap_or_default();
        match (params.get("name"), params.get("arguments")) {
            (Some(Value::String(_)), Some(arguments)) => {
                let arguments: String = arguments.to_string().chars().take(60).collect();
                let message = format!(
                    "INVALID_ARGS: arguments: {arguments} is not allowed; it must be an object"
                );
                let mut result = tool_result(ToolReply::error(message));
                // A missing `resultType` means the same in every protocol version; the SDK does not
                // set it here.
                result.result_type = None;
                Ok(CustomResult(serde_json::to_value(result).unwrap_or_default()))
            }
            _ => {
                let message = "tools/call takes {\"name\": string, \"arguments\": object}";
                Err(ErrorData::invalid_params(message, None))
            }
        }
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(self.connection.toolsets().resources()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resource::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match self.connection.toolsets().read_resource(&request.uri) {
            Some(read) => Ok(read),
            None => {
                let scope = self.connection.read_scope();
                resource::read(&self.app.records, &scope, &request.uri).await
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<rmcp::model::ListPromptsRequestMethod>())
    }
}

/// Formats a reply as content only: the leading clients drop it when there is structured content as well.
pub fn tool_result(reply: ToolReply) -> CallToolResult {
    let mut content = vec![ContentBlock::text(reply.text)];
    content.extend(reply.images.into_iter().map(media_block));
    if reply.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) }
}

/// Formats an image or a recording as a block.
pub fn media_block(image: Image) -> ContentBlock {
    let mime = image.mime.name();
    match image.mime.is_audio() {
        true => ContentBlock::audio(image.base64, mime),
        false => ContentBlock::image(image.base64, mime),
    }
}
