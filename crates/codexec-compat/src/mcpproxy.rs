//! The toolset `mcpproxy`: MCPProxy's tools for running code, in its format.

mod call_tool;
mod code_execution;
mod retrieve_tools;
mod settings;
mod tools;

use std::sync::Arc;

use codexec_server::mcp::{
    CallOutcome, PendingCall, ToolRequest, Toolset, media_block, tool_result,
};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool};

pub use self::code_execution::{CodeExecution, CodeExecutionStatus, NamedScript};
pub use self::settings::ProxySettings;
use crate::Seed;

const INSTRUCTIONS: &str = "code_execution runs JavaScript or TypeScript in a sandbox: \
 call_tool(server, tool, args) waits and gives {ok, result} or {ok, error}, call_tools([..]) calls \
 many at once. retrieve_tools finds tools first.\n";

/// The toolset `mcpproxy`: `code_execution`, `retrieve_tools`, `call_tool`.
#[derive(Clone)]
pub struct McpproxyTools {
    settings: Arc<ProxySettings>,
}

impl McpproxyTools {
    pub fn new(settings: ProxySettings) -> McpproxyTools {
        McpproxyTools { settings: Arc::new(settings) }
    }
}

impl Toolset for McpproxyTools {
    fn name(&self) -> &'static str {
        Seed::Mcpproxy.toolset()
    }

    fn instructions(&self) -> &'static str {
        INSTRUCTIONS
    }

    fn tools(&self) -> Vec<Tool> {
        tools::tools(&self.settings)
    }

    fn has_tool(&self, tool: &str) -> bool {
        tool == "code_execution" || tool == "retrieve_tools" || call_tool::is_tool(tool)
    }

    fn begin(&self, tool: &str, arguments: JsonObject, request: &ToolRequest<'_>) -> PendingCall {
        let toolset = self.clone();
        match tool {
            "code_execution" => request.start(move |app, client| async move {
                let executed = toolset.code_execution(&app, arguments, &client).await;
                CallOutcome::own(result(executed))
            }),
            "retrieve_tools" => request.start(move |app, client| async move {
                let limit = toolset.settings.tools_limit;
                let reply = retrieve_tools::call(&app, &client, arguments, limit).await;
                CallOutcome::own(tool_result(reply))
            }),
            call => call_tool::begin(call, arguments, request),
        }
    }
}

/// Formats the result. As in MCPProxy, code that fails is a normal result; `isError` means that
/// nothing was run. The output is a separate block, so that the first one is only the JSON.
fn result(executed: CodeExecution) -> CallToolResult {
    let CodeExecution { text, output, images, links, came } = executed;
    let mut content = vec![ContentBlock::text(text)];
    if !output.is_empty() {
        content.push(ContentBlock::text(format!("[output]\n{output}")));
    }
    let images = images.into_iter();
    content.extend(images.map(media_block));
    content.extend(links);
    match came {
        CodeExecutionStatus::Fine | CodeExecutionStatus::Failed => CallToolResult::success(content),
        CodeExecutionStatus::Refused => CallToolResult::error(content),
    }
}
