//! The toolset `code-execution-mode`: the tool of MCP Server Code Execution Mode, in its format.

mod arguments;
mod capabilities;
mod payload;
mod settings;
mod text;
mod toon;

use std::sync::Arc;

use codexec_server::mcp::{
    CallOutcome, PendingCall, ToolRequest, Toolset, execution_meta, link_files, tool, tool_result,
};
use codexec_server::{App, Client, ExecuteError, ToolReply, render_notes};
use rmcp::model::{
    CallToolResult, JsonObject, ReadResourceResponse, Resource, Tool, ToolAnnotations,
};
use serde_json::json;

use self::arguments::RunPythonArguments;
use self::payload::Payload;
pub use self::settings::{BridgeSettings, OutputMode};
use crate::Seed;

const INSTRUCTIONS: &str = "run_python runs Python in a sandbox. `from mcp import runtime` \
 finds tools of all servers: runtime.search_tool_docs(query), runtime.query_tool_docs(server). \
 Name the servers to call in `servers`, then: await mcp_<alias>.tool(..).\n";

/// The toolset `code-execution-mode`: `run_python`.
pub struct CodeExecutionModeTools {
    settings: Arc<BridgeSettings>,
}

impl CodeExecutionModeTools {
    pub fn new(settings: BridgeSettings) -> CodeExecutionModeTools {
        CodeExecutionModeTools { settings: Arc::new(settings) }
    }
}

impl Toolset for CodeExecutionModeTools {
    fn name(&self) -> &'static str {
        Seed::CodeExecutionMode.toolset()
    }

    fn instructions(&self) -> &'static str {
        INSTRUCTIONS
    }

    fn tools(&self) -> Vec<Tool> {
        vec![run_python()]
    }

    fn has_tool(&self, tool: &str) -> bool {
        tool == "run_python"
    }

    fn begin(&self, _: &str, arguments: JsonObject, request: &ToolRequest<'_>) -> PendingCall {
        let settings = Arc::clone(&self.settings);
        request.start(move |app, client| async move {
            CallOutcome::own(run(&app, &settings, arguments, &client).await)
        })
    }

    fn resources(&self) -> Vec<Resource> {
        vec![capabilities::resource()]
    }

    fn read_resource(&self, uri: &str) -> Option<ReadResourceResponse> {
        (uri == capabilities::URI).then(capabilities::read)
    }
}

fn run_python() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "servers": {
                "type": "array",
                "items": {"type": "string"},
                "description": "the code may call these and no others",
            },
            "timeout": {"type": "integer", "description": "seconds, default 30"},
        },
        "required": ["code"],
    });
    let description = "Run Python in a sandbox (no network, top-level await). Find tools: `from \
        mcp import runtime`; runtime.discovered_servers(), runtime.search_tool_docs_sync(query), \
        runtime.query_tool_docs_sync(server), runtime.capability_summary(). Call those in \
        `servers`: `await mcp_<server>.<tool>(..)`. Prints and the last expression come back.";
    let annotations = ToolAnnotations::with_title("Run Python").destructive(true).open_world(true);
    tool("run_python", description, schema, annotations)
}

async fn run(
    app: &App,
    settings: &BridgeSettings,
    arguments: JsonObject,
    client: &Client,
) -> CallToolResult {
    let output = settings.output;
    let not_run =
        |payload: Payload| result(&payload, ToolReply::error(text::render(&payload, output)));
    let asked = match RunPythonArguments::read(arguments, app, settings, client) {
        Ok(asked) => asked,
        Err(why) => return not_run(Payload::invalid(why)),
    };
    let execution = match app.execute(asked.to_request(), client).await {
        Ok(execution) => execution,
        Err(ExecuteError::Refused(why)) => return not_run(Payload::invalid(why.to_string())),
        Err(error) => {
            tracing::debug!(%error, "not executed");
            return not_run(Payload::failed(&error));
        }
    };
    let payload = Payload::of(&execution, &asked, client.connection.budget());
    let mut said = text::render(&payload, output);
    let left = render_notes(&execution);
    if !left.is_empty() {
        said = format!("{said}\n{left}");
    }
    let is_error = execution.outcome.code().is_some();
    let images = execution.images.shown.clone();
    let mut result = result(&payload, ToolReply { text: said, images, is_error });
    result.content.extend(link_files(&execution));
    result.meta = Some(execution_meta(&execution));
    result
}

fn result(payload: &Payload, reply: ToolReply) -> CallToolResult {
    let mut result = tool_result(reply);
    result.structured_content = Some(payload.value());
    result
}

#[cfg(test)]
mod tests;
