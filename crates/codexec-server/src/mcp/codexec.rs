//! The toolset `codexec`: sessions, scripts, packages and logs as tools. Each tool is one of
//! codexec's own functions, and its text is the function's JSON.

mod exposed;
mod tools;

use codexec_functions::OwnFunction;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};

pub(super) use self::exposed::{is_tool as is_script, tools as script_tools};
pub(super) use self::tools::tools;
use super::execute_code::retry_meta;
use super::media_block;
use super::pending_call::{CallOutcome, PendingCall};
use super::tool_request::ToolRequest;
use crate::own::{OwnFunctionError, OwnFunctionResult};

/// Returns the function behind a tool of this toolset.
pub(super) fn find_tool(name: &str) -> Option<OwnFunction> {
    OwnFunction::from_name(name).filter(|function| function.spec().tool.is_some())
}

pub(super) fn begin(
    function: OwnFunction,
    arguments: Map<String, Value>,
    request: &ToolRequest<'_>,
) -> PendingCall {
    let peer = request.peer();
    request.start(move |app, client| async move {
        let changes_scripts = matches!(
            function,
            OwnFunction::SaveScript
                | OwnFunction::RunScript
                | OwnFunction::SaveAndRunScript
                | OwnFunction::DeleteScript
        );
        let before = if changes_scripts { app.scripts.list_exposed().await.ok() } else { None };
        let owned = app.call_own_function(function, arguments, &client).await;
        // The exposed scripts, and with them the tool list, may have changed.
        if changes_scripts && app.scripts.list_exposed().await.ok() != before {
            let _ = peer.notify_tool_list_changed().await;
        }
        CallOutcome::own(result(owned))
    })
}

/// Calls a script that is exposed as a tool: the arguments are the script's `input`.
pub(super) fn begin_script(
    tool: &str,
    arguments: Map<String, Value>,
    request: &ToolRequest<'_>,
) -> PendingCall {
    let tool = tool.to_owned();
    request.start(move |app, client| async move {
        let scripts = app.scripts.list_exposed().await.unwrap_or_default();
        let Some(script) = exposed::find(&scripts, &tool) else {
            let message = format!("there is no tool {tool:?} here; tools/list has all there are");
            return CallOutcome::Refused(ErrorData::invalid_params(message, None));
        };
        let mut args = Map::new();
        args.insert("name".to_owned(), script.name.clone().into());
        args.insert("input".to_owned(), Value::Object(arguments));
        let owned = app.call_own_function(OwnFunction::RunScript, args, &client).await;
        CallOutcome::own(result(owned))
    })
}

fn result(owned: Result<OwnFunctionResult, OwnFunctionError>) -> CallToolResult {
    match owned {
        Ok(OwnFunctionResult { value, images, links, is_failure }) => {
            let mut content = vec![ContentBlock::text(value.to_string())];
            content.extend(images.into_iter().map(media_block));
            content.extend(links);
            match is_failure {
                true => CallToolResult::error(content),
                false => CallToolResult::success(content),
            }
        }
        Err(error) => {
            tracing::debug!(%error, "refused");
            let text = ContentBlock::text(error.value().to_string());
            let mut result = CallToolResult::error(vec![text]);
            result.meta = retry_meta(&error);
            result
        }
    }
}
