//! The toolset `code-execution-mode`: the tool of MCP Server Code Execution Mode, in its format.

mod arguments;
mod capabilities;
mod payload;
mod text;

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, Tool, ToolAnnotations};
use rmcp::service::RequestContext;
use serde_json::{Map, Value, json};

use self::arguments::RunPythonArguments;
pub(super) use self::capabilities::{URI, read, resource};
use self::payload::Payload;
use super::codexec::start_call;
use super::execute_code::meta;
use super::pending_call::{CallOutcome, PendingCall};
use super::{tool, tool_result};
use crate::reply::render_notes;
use crate::{App, Client, ExecuteError, ToolReply};

pub(super) fn tools() -> Vec<Tool> {
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
    vec![tool::tool("run_python", description, schema, annotations)]
}

pub(super) fn is_tool(name: &str) -> bool {
    name == "run_python"
}

pub(super) fn begin(
    app: &Arc<App>,
    arguments: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> PendingCall {
    start_call(app, context, move |app, client| async move {
        CallOutcome::Own(Box::new(run(&app, arguments, &client).await))
    })
}

async fn run(app: &App, arguments: Map<String, Value>, client: &Client) -> CallToolResult {
    let output = app.seeds.bridge.output;
    let not_run =
        |payload: Payload| result(&payload, ToolReply::error(text::render(&payload, output)));
    let asked = match RunPythonArguments::read(arguments, app) {
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
    let payload = Payload::of(&execution, &asked);
    let mut said = text::render(&payload, output);
    let left = render_notes(&execution);
    if !left.is_empty() {
        said = format!("{said}\n{left}");
    }
    let is_error = execution.outcome.code().is_some();
    let images = execution.images.shown.clone();
    let mut result = result(&payload, ToolReply { text: said, images, is_error });
    result.meta = Some(meta(&execution));
    result
}

fn result(payload: &Payload, reply: ToolReply) -> CallToolResult {
    let mut result = tool_result(reply);
    result.structured_content = Some(payload.value());
    result
}

#[cfg(test)]
mod tests;
