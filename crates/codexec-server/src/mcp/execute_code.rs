use rmcp::model::{CallToolResult, MetaObject};
use serde_json::{Map, Value, json};

use super::pending_call::{CallOutcome, PendingCall};
use super::resource::link_files;
use super::tool_request::ToolRequest;
use super::tool_result;
use crate::fields::Fields;
use crate::own::OwnFunctionError;
use crate::{FinishedExecution, TextBudget, ToolReply, render_reply};

pub(super) fn begin(arguments: Map<String, Value>, request: &ToolRequest<'_>) -> PendingCall {
    request.start(move |app, client| async move {
        let executed = app.execute_code(Fields::new(arguments), &client).await;
        CallOutcome::own(result(executed, client.connection.budget()))
    })
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
            tool_result(ToolReply::error(error.to_string()))
        }
    }
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
