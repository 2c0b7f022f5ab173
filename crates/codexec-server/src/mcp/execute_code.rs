use codexec_types::Language;
use rmcp::model::{CallToolResult, MetaObject};
use serde_json::{Map, Value, json};

use super::pending_call::{CallOutcome, PendingCall};
use super::resource::link_files;
use super::tool_request::ToolRequest;
use super::{CompactTools, tool_result};
use crate::fields::Fields;
use crate::own::OwnFunctionError;
use crate::{App, Connection, FinishedExecution, TextBudget, ToolReply, render_reply};

const EXECUTE_CODE: &str = "execute_code";
/// The field in the metadata of a refusal with the seconds to wait.
pub(super) const RETRY_META: &str = "codexec/retry_after_s";

pub(super) fn begin(arguments: Map<String, Value>, request: &ToolRequest<'_>) -> PendingCall {
    request.start(move |app, client| async move {
        let executed = app.execute_code(Fields::new(arguments), &client).await;
        CallOutcome::own(result(executed, client.connection.budget()))
    })
}

/// Returns the answer to a message that requests an execution while the server is busy. Nothing is
/// done for such a request, so that many of them do not delay each other.
pub(super) fn refuse_if_busy(
    app: &App,
    connection: &Connection,
    message: &Value,
) -> Option<CallToolResult> {
    let params = message.get("params")?;
    let arguments = params.get("arguments")?;
    let is_execution = message.get("method")? == "tools/call"
        && params.get("name")? == EXECUTE_CODE
        // A session has its worker.
        && arguments.get("session").is_none();
    let toolset = connection.toolsets().find(EXECUTE_CODE)?;
    if !is_execution || toolset.name() != CompactTools::NAME || connection.is_read_only() {
        return None;
    }
    let language = arguments.get("language").and_then(Value::as_str).and_then(Language::parse);
    let identity = connection.principal().identity();
    let busy = app.check_queue(identity, language).err()?;
    Some(result(Err(busy.into()), connection.budget()))
}

fn result(
    executed: Result<FinishedExecution, OwnFunctionError>,
    budget: TextBudget,
) -> CallToolResult {
    match executed {
        Ok(execution) => {
            let mut result = tool_result(render_reply(&execution, budget));
            result.content.extend(link_files(&execution));
            result.meta = Some(execution_meta(&execution));
            result
        }
        Err(error) => {
            tracing::debug!(%error, "not executed");
            let mut result = tool_result(ToolReply::error(error.to_string()));
            result.meta = retry_meta(&error);
            result
        }
    }
}

/// Returns when to try again, for programs; agents read it in the text.
pub(super) fn retry_meta(error: &OwnFunctionError) -> Option<MetaObject> {
    let mut meta = MetaObject::default();
    meta.0.insert(RETRY_META.to_owned(), error.retry_after_s()?.into());
    Some(meta)
}

/// Returns metadata of an execution for programs; agents do not see it.
pub fn execution_meta(execution: &FinishedExecution) -> MetaObject {
    let mut meta = MetaObject::default();
    let about = json!({
        "id": execution.id.as_str(),
        "session": execution.session.as_ref().map(codexec_types::SessionId::as_str),
        "duration_ms": execution.duration.as_secs_f64() * 1e3,
        "tool_calls": execution.usage.tool_calls,
        "cpu_ms": execution.usage.cpu.as_secs_f64() * 1e3,
        "peak_memory_bytes": execution.usage.peak_memory_bytes,
        "limits_met": execution.limits_met.iter().map(|limit| limit.code()).collect::<Vec<_>>(),
    });
    meta.0.insert("codexec/execution".to_owned(), about);
    meta
}
