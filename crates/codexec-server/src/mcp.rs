//! The MCP edge: wire in, one call, wire out. The SDK's types stay in this folder.

mod execute_code;
mod fields;
mod health;
mod instructions;
mod resource;
mod search_tools;
mod stdio;
mod tool;

use std::sync::Arc;
use std::time::Instant;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{QuitReason, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{App, Reply};

/// The list never changes while we run.
const TOOLS_TTL_MS: u64 = 24 * 60 * 60 * 1_000;

/// One client's connection.
#[derive(Clone)]
pub struct Server {
    app: Arc<App>,
    started: Instant,
}

/// Serves one client over standard input and output until it leaves or `stop` is called.
pub async fn serve_stdio(app: Arc<App>, stop: CancellationToken) -> Result<(), ServeError> {
    let server = Server { app, started: Instant::now() };
    let transport = stdio::ClientPipe::open();
    let running = match server.serve_with_ct(transport, stop).await {
        Ok(running) => running,
        // A client that leaves before it has said hello has simply left.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(rmcp::service::ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(ServeError::Handshake(Box::new(error))),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Broken(error)),
        Ok(_) => Ok(()),
    }
}

/// How many tools an agent is shown, and how many characters of JSON that takes.
pub fn listed_tools() -> (usize, usize) {
    let tools = tool::compact();
    let listed = serde_json::to_string(&tools).unwrap_or_default();
    (tools.len(), listed.chars().count())
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the client did not begin as MCP says")]
    Handshake(#[source] Box<rmcp::service::ServerInitializeError>),
    #[error("the connection's task ended by a fault of ours")]
    Broken(#[source] tokio::task::JoinError),
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("codexec", env!("CARGO_PKG_VERSION")).with_title("codexec"),
            )
            .with_instructions(instructions::text(&self.app.gateway.server_names()))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut list = ListToolsResult::with_all_items(tool::compact());
        list.ttl_ms = Some(TOOLS_TTL_MS);
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match request.name.as_ref() {
            "execute_code" => execute_code::call(&self.app, arguments, context).await,
            "search_tools" => content(search_tools::call(&self.app, arguments).await),
            "health" => content(health::call(&self.app, arguments, self.started).await),
            other => {
                let message = format!(
                    "there is no tool {other:?} here; there are execute_code, search_tools, \
                     health, and inside execute_code `tools.<server>.<tool>(..)`"
                );
                return Err(ErrorData::invalid_params(message, None));
            }
        };
        Ok(CallToolResponse::Complete(result))
    }

    /// What is called a tool call and does not look like one.
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
                let message = format!(
                    "INVALID_ARGS: arguments: {arguments} is not allowed; it must be an object"
                );
                let mut result = content(Reply::error(message));
                // Left out, it means the same in every revision; the SDK does not look in here.
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
        Ok(ListResourcesResult::with_all_items(Vec::new()))
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
        resource::read(&self.app.records, &request.uri).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<rmcp::model::ListPromptsRequestMethod>())
    }
}

/// Content only: the leading clients drop it when there is structured content beside it.
fn content(reply: Reply) -> CallToolResult {
    let mut content = vec![ContentBlock::text(reply.text)];
    let images = reply.images.into_iter();
    content.extend(images.map(|image| ContentBlock::image(image.base64, image.mime.name())));
    if reply.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) }
}
