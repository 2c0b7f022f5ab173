//! Executions as clients of the API see them.

use std::time::Duration;

use codexec_server::own::{escape_changes, exit_code};
use codexec_server::{
    ExecutionEvent, FinishedExecution, RunningExecution, coarse_status, explain_outcome,
};
use codexec_store::{CallRecord, ExecutionRecord, ExecutionSummary, LogMatch};
use codexec_types::{Edge, Identity, OutputStream, SessionId, format_rfc3339};
use serde_json::{Map, Value, json};

use super::sse::Event;

/// Formats an execution that has just finished, with everything that its record may lack.
pub(super) fn finished(execution: &FinishedExecution) -> Value {
    let code = execution.outcome.code();
    let error = code.map(|code| json!({"code": code, "message": explain_outcome(execution)}));
    let names = execution.images.files.iter().map(|path| path.file_name()?.to_str());
    let names = names.chain(std::iter::repeat(None));
    let images = execution.images.shown.iter().zip(names).map(|(image, artifact)| {
        json!({"mime_type": image.mime, "artifact": artifact, "data": image.base64})
    });
    let images: Vec<Value> = images.collect();
    let limits_met: Vec<&str> = execution.limits_met.iter().map(|limit| limit.code()).collect();
    without_nulls(json!({
        "id": execution.id.as_str(),
        "status": coarse_status(&execution.outcome).name(),
        "language": execution.language.name(),
        "session": execution.session.as_ref().map(SessionId::as_str),
        "session_ended": execution.session_ended,
        "duration_ms": milliseconds(execution.duration),
        "exit_code": exit_code(&execution.outcome),
        "error": error,
        "value": execution.outcome.value().and_then(parse_value),
        "output": execution.output.text(),
        "stderr": execution.output.stderr(),
        "images": images,
        "images_left_out": (execution.images.left_out > 0).then_some(execution.images.left_out),
        "files": escape_changes(execution.changes.clone()),
        "tool_calls": execution.usage.tool_calls,
        "limits": {"wall_ms": milliseconds(execution.limits.wall), "met": limits_met},
        "usage": {
            "cpu_ms": milliseconds(execution.usage.cpu),
            "peak_memory_bytes": execution.usage.peak_memory_bytes,
        },
        "hint": execution.hint,
    }))
}

/// Formats the record of an execution, running or ended. `images` are the kept files that it
/// showed.
pub(super) fn record(execution: &ExecutionRecord, images: &[Value]) -> Value {
    let mut view = summary(&execution.summary, execution.identity.as_ref(), execution.edge);
    let written = execution.written.as_ref();
    let calls: Vec<Value> = execution.calls.iter().map(call).collect();
    let usage = execution.summary.cpu.map(|cpu| {
        json!({
            "cpu_ms": milliseconds(cpu),
            "peak_memory_bytes": execution.summary.peak_memory_bytes,
        })
    });
    // The layers in force, then the missing ones with their reasons.
    let posture = execution.summary.posture.as_deref().map(|text| {
        let (layers, missing) = text.split_once(' ').unwrap_or((text, ""));
        (layers.split(',').collect::<Vec<_>>(), missing)
    });
    let missing = posture.as_ref().map(|(_, missing)| *missing).filter(|text| !text.is_empty());
    let more = json!({
        "agent": execution.context.agent_id,
        "trace": execution.context.trace_id,
        "code": execution.code,
        "input": parse_value(&execution.input).filter(|input| !input.is_null()),
        "args": execution.args,
        "working_dir": execution.working_dir,
        "value": execution.value.as_deref().and_then(parse_value),
        "output": written.map(codexec_types::GuestOutput::text),
        "stderr": written.map(codexec_types::GuestOutput::stderr),
        "calls": calls,
        "images": images,
        "files": escape_changes(execution.changes.clone()),
        "limits": {"wall_ms": milliseconds(execution.wall), "met": execution.summary.limits_met},
        "usage": usage,
        "posture": posture.as_ref().map(|(layers, _)| layers),
        "posture_missing": missing,
        "allowed_tools": execution.allowed_tools,
        "grants": execution.grants,
        "packages": execution.packages,
    });
    extend(&mut view, more);
    view
}

/// Formats an entry of the list.
pub(super) fn list_entry(found: &LogMatch) -> Value {
    let mut view = summary(&found.summary, found.identity.as_ref(), found.edge);
    let more = json!({
        "agent": found.agent,
        "code_preview": found.code,
        "images": found.summary.images,
        "error_preview": found.error.as_deref().filter(|_| found.summary.error_code.is_some()),
    });
    extend(&mut view, more);
    view
}

fn summary(summary: &ExecutionSummary, owner: Option<&Identity>, edge: Option<Edge>) -> Value {
    let script = summary.script.as_ref();
    let message = summary.message.as_deref().unwrap_or_default();
    let error = summary.error_code.as_ref().map(|code| json!({"code": code, "message": message}));
    without_nulls(json!({
        "id": summary.id.as_str(),
        "status": summary.kind.name(),
        "language": summary.language,
        "session": summary.session.as_ref().map(SessionId::as_str),
        "script": script.map(|(name, version)| json!({"name": name, "version": version})),
        "started": format_rfc3339(summary.started),
        "ended": summary.ended.map(format_rfc3339),
        "duration_ms": summary.duration.map(milliseconds),
        "exit_code": summary.exit_status(),
        "error": error,
        "tool_calls": summary.tool_calls,
        "principal": owner.map(ToString::to_string),
        "edge": edge.map(Edge::name),
    }))
}

fn call(call: &CallRecord) -> Value {
    let message = call.message.as_deref().unwrap_or_default();
    let error = call.error_code.as_ref().map(|code| json!({"code": code, "message": message}));
    without_nulls(json!({
        "number": call.number,
        "server": call.server,
        "tool": call.tool,
        "arguments": call.args,
        "start_ms": call.after.map(milliseconds),
        "duration_ms": call.duration.map(milliseconds),
        "result_bytes": call.result_bytes,
        "error": error,
    }))
}

/// Formats what is known of an execution when it starts.
pub(super) fn running(execution: &RunningExecution) -> Value {
    without_nulls(json!({
        "id": execution.id.as_str(),
        "status": "running",
        "language": execution.language.name(),
        "session": execution.session.as_ref().map(SessionId::as_str),
        "started": format_rfc3339(execution.started),
        "principal": execution.principal.identity().to_string(),
        "edge": execution.principal.edge().map(Edge::name),
        "agent": execution.principal.agent(),
    }))
}

/// Returns the events for clients that one event of an execution becomes.
pub(super) fn events(event: &ExecutionEvent) -> Vec<Event> {
    match event {
        ExecutionEvent::Started(about) => vec![("started", running(about))],
        ExecutionEvent::Output { stream, text } => vec![output(*stream, text)],
        ExecutionEvent::Earlier(pieces) => {
            pieces.iter().map(|(stream, text)| output(*stream, text)).collect()
        }
        ExecutionEvent::Progress(message) => vec![("progress", json!({"message": &**message}))],
        ExecutionEvent::Call { server, tool } => {
            vec![("call", json!({"server": &**server, "tool": &**tool}))]
        }
        ExecutionEvent::Image(mime) => vec![("image", json!({"mime_type": mime}))],
        ExecutionEvent::Missed(count) => vec![("missed", json!({"events": count}))],
    }
}

fn output(stream: OutputStream, text: &str) -> Event {
    let stream = match stream {
        OutputStream::Out => "stdout",
        OutputStream::Err => "stderr",
    };
    ("output", json!({"stream": stream, "text": text}))
}

/// Returns the JSON that a text is, or the text itself, if it was cut.
fn parse_value(text: &str) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(Value::Null) => None,
        Ok(value) => Some(value),
        Err(_) => Some(Value::String(text.to_owned())),
    }
}

/// Rounds to three decimal places.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

pub(super) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

fn extend(view: &mut Value, more: Value) {
    if let (Some(view), Value::Object(more)) = (view.as_object_mut(), without_nulls(more)) {
        view.extend(more);
    }
}
