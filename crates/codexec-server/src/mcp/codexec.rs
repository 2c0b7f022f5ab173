//! The toolset `codexec`: sessions, scripts, packages and logs as tools. Each tool is one of
//! codexec's own functions, and its text is the function's JSON.

mod exposed;
mod tools;

use std::sync::Arc;

use codexec_types::{Image, RequestOrigin};
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub(super) use self::exposed::{is_tool as is_script, tools as script_tools};
pub(super) use self::tools::tools;
use super::pending_call::{self, CallOutcome, PendingCall, ProgressSource};
use crate::own::{OwnFunctionError, OwnFunctionResult};
use crate::{App, Client, Progress};

pub(super) fn begin(
    app: &Arc<App>,
    name: &str,
    arguments: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> PendingCall {
    let (name, peer) = (name.to_owned(), context.peer.clone());
    start_call(app, context, move |app, client| async move {
        let changes_scripts = name.ends_with("_script") && !name.starts_with("get");
        let before = if changes_scripts { app.scripts.list_exposed().await.ok() } else { None };
        let owned = app.call_own_function(&name, arguments, &client).await;
        // The exposed scripts, and with them the tool list, may have changed.
        if changes_scripts && app.scripts.list_exposed().await.ok() != before {
            let _ = peer.notify_tool_list_changed().await;
        }
        CallOutcome::Own(Box::new(result(owned)))
    })
}

/// Calls a script that is exposed as a tool: the arguments are the script's `input`.
pub(super) fn begin_script(
    app: &Arc<App>,
    tool: &str,
    arguments: Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> PendingCall {
    let tool = tool.to_owned();
    start_call(app, context, move |app, client| async move {
        let scripts = app.scripts.list_exposed().await.unwrap_or_default();
        let Some(script) = exposed::find(&scripts, &tool) else {
            let message = format!("there is no tool {tool:?} here; tools/list has all there are");
            return CallOutcome::Refused(ErrorData::invalid_params(message, None));
        };
        let mut args = Map::new();
        args.insert("name".to_owned(), script.name.clone().into());
        args.insert("input".to_owned(), Value::Object(arguments));
        CallOutcome::Own(Box::new(result(app.call_own_function("run_script", args, &client).await)))
    })
}

/// Runs the call in its own task, so that a client that disconnects cancels by token and never by
/// drop.
pub(super) fn start_call<F: Future<Output = CallOutcome> + Send + 'static>(
    app: &Arc<App>,
    context: &RequestContext<RoleServer>,
    work: impl FnOnce(Arc<App>, Client) -> F,
) -> PendingCall {
    let progress = watch::Sender::new(Progress::default());
    let updates = progress.subscribe();
    let (caller, questions) = pending_call::create_caller(context);
    let cancel = CancellationToken::new();
    let client = Client {
        caller,
        cancel: cancel.clone(),
        progress,
        context: read_context(context),
        ..Client::local()
    };
    let running = tokio::spawn(work(Arc::clone(app), client));
    let mut call = PendingCall::new(running, cancel, ProgressSource::execution(updates), questions);
    call.names_servers = true;
    call
}

fn result(owned: Result<OwnFunctionResult, OwnFunctionError>) -> CallToolResult {
    match owned {
        Ok(OwnFunctionResult { value, images, is_failure }) => {
            let mut content = vec![ContentBlock::text(value.to_string())];
            content.extend(images.into_iter().map(image_block));
            match is_failure {
                true => CallToolResult::error(content),
                false => CallToolResult::success(content),
            }
        }
        Err(error) => {
            tracing::debug!(%error, "refused");
            CallToolResult::error(vec![ContentBlock::text(error.value().to_string())])
        }
    }
}

fn image_block(image: Image) -> ContentBlock {
    ContentBlock::image(image.base64, image.mime.name())
}

/// Reads from the request's `_meta` who is behind it.
pub(super) fn read_context(context: &RequestContext<RoleServer>) -> RequestOrigin {
    const MAX_CHARS: usize = 200;
    let word = |names: &[&str]| {
        let value = names.iter().find_map(|name| context.meta.0.get(*name))?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(text.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect())
    };
    RequestOrigin {
        agent_id: word(&["agent_id", "agentId", "codexec/agent_id"]),
        trace_id: word(&["trace_id", "traceId", "codexec/trace_id", "traceparent"]),
        chat_id: word(&["chat_id", "chatId", "codexec/chat_id", "conversation_id"]),
    }
}
