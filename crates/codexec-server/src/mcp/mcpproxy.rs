//! The toolset `mcpproxy`: MCPProxy's tools for running code, in its format.

mod call_tool;
mod retrieve_tools;
mod tools;

use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

pub(super) use self::tools::tools;
use super::codexec::start_call;
use super::pending_call::{CallOutcome, PendingCall};
use crate::{App, CodeExecution, CodeExecutionStatus};

pub(super) fn is_tool(name: &str) -> bool {
    name == "code_execution" || name == "retrieve_tools" || call_tool::is_tool(name)
}

pub(super) fn begin(
    app: &Arc<App>,
    name: &str,
    arguments: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> PendingCall {
    match name {
        "code_execution" => start_call(app, context, move |app, client| async move {
            CallOutcome::Own(Box::new(result(app.code_execution(arguments, &client).await)))
        }),
        "retrieve_tools" => start_call(app, context, move |app, _| async move {
            CallOutcome::Own(Box::new(super::tool_result(
                retrieve_tools::call(&app, arguments).await,
            )))
        }),
        call => call_tool::begin(app, call, arguments, context),
    }
}

/// Formats the result. As in MCPProxy, code that fails is a normal result; `isError` means that
/// nothing was run. The output is a separate block, so that the first one is only the JSON.
fn result(executed: CodeExecution) -> CallToolResult {
    let CodeExecution { text, output, images, came } = executed;
    let mut content = vec![ContentBlock::text(text)];
    if !output.is_empty() {
        content.push(ContentBlock::text(format!("[output]\n{output}")));
    }
    let images = images.into_iter();
    content.extend(images.map(|image| ContentBlock::image(image.base64, image.mime.name())));
    match came {
        CodeExecutionStatus::Fine | CodeExecutionStatus::Failed => CallToolResult::success(content),
        CodeExecutionStatus::Refused => CallToolResult::error(content),
    }
}
