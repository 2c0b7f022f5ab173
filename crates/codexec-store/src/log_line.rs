//! Renders an execution as a line of a log file: first the fields that other tools for such files
//! expect, then our own.

use codexec_types::{Artifact, Edge, format_rfc3339};
use serde_json::{Map, Value, json};

use crate::execution::{CallRecord, CoarseStatus, ExecutionRecord};

/// Returns the prefix that only this execution's line has.
pub(crate) fn prefix(execution_id: &str) -> String {
    format!("{{\"type\":\"execution\",\"execution_id\":\"{execution_id}\"")
}

/// Renders the line, without a newline.
pub(crate) fn render(execution: &ExecutionRecord) -> String {
    let mut fields = Map::new();
    fields.insert("type".to_owned(), "execution".into());
    fields.insert("execution_id".to_owned(), execution.summary.id.as_str().into());
    let shared = if execution.summary.session.is_some() {
        session_fields(execution)
    } else {
        one_shot_fields(execution)
    };
    for part in [shared, own_fields(execution)] {
        if let Value::Object(part) = part {
            fields.extend(part);
        }
    }
    Value::Object(fields).to_string()
}

fn one_shot_fields(execution: &ExecutionRecord) -> Value {
    let summary = &execution.summary;
    let (stdout, stderr) = streams(execution);
    json!({
        "language": summary.language,
        "code": execution.code,
        "stdin": null,
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": summary.exit_status(),
        "timed_out": summary.kind == CoarseStatus::Timeout,
        "duration_ms": summary.duration.map(whole_ms),
        "memory_peak_mb": summary.peak_memory_bytes.map(mebibytes),
        "sandbox_mode": SANDBOX_MODE,
        "working_dir": execution.working_dir,
        "artifacts": artifacts(execution),
        "guardian": null,
        "context": execution.context,
        "executed_at": format_rfc3339(summary.started),
    })
}

fn session_fields(execution: &ExecutionRecord) -> Value {
    let summary = &execution.summary;
    let (stdout, stderr) = streams(execution);
    json!({
        "session_id": summary.session.as_ref().map(codexec_types::SessionId::as_str),
        "code": execution.code,
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": summary.exit_status(),
        "duration_ms": summary.duration.map(whole_ms),
        "at": format_rfc3339(summary.started),
        "language": summary.language,
        "timed_out": summary.kind == CoarseStatus::Timeout,
        "memory_peak_mb": summary.peak_memory_bytes.map(mebibytes),
        "sandbox_mode": SANDBOX_MODE,
        "working_dir": execution.working_dir,
        "artifacts": artifacts(execution),
        "guardian": null,
        "context": execution.context,
    })
}

fn own_fields(execution: &ExecutionRecord) -> Value {
    let summary = &execution.summary;
    let layers: Vec<&str> =
        summary.posture.as_deref().map(|layers| layers.split(',').collect()).unwrap_or_default();
    let script = summary.script.as_ref();
    let calls: Vec<Value> = execution.calls.iter().map(call_fields).collect();
    json!({
        "status": summary.kind.name(),
        "error_code": summary.error_code,
        "error_message": summary.message,
        "value": execution.value.as_deref().map(json_or_text),
        "input": json_or_text(&execution.input),
        "args": execution.args,
        "script": script.map(|(name, version)| json!({"name": name, "version": version})),
        "principal": execution.identity.as_ref().map(ToString::to_string),
        "edge": execution.edge.map(Edge::name),
        "allowed_tools": execution.allowed_tools,
        "grants": execution.grants,
        "tool_calls": calls,
        "limits_met": summary.limits_met,
        "sandbox_layers": layers,
        "cpu_ms": summary.cpu.map(whole_ms),
        "images": summary.images.unwrap_or_default(),
        "artifacts_held_back": execution.changes.held_back,
        "artifacts_in_conflict": execution.changes.conflicts,
        "artifacts_between_cells": execution.changes.between_cells,
        "artifacts_of_nested_code": execution.changes.nested,
        "packages_installed": execution.packages,
        "ended_at": summary.ended.map(format_rfc3339),
    })
}

fn call_fields(call: &CallRecord) -> Value {
    json!({
        "server": call.server,
        "tool": call.tool,
        "args": json_or_text(&call.args),
        "duration_ms": call.duration.map(|duration| duration.as_secs_f64() * 1_000.0),
        "error_code": call.error_code,
        "error_message": call.message,
        "result_bytes": call.result_bytes,
    })
}

const SANDBOX_MODE: &str = "process";

/// Parses a JSON text. A truncated one becomes a string.
fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn streams(execution: &ExecutionRecord) -> (String, String) {
    let written = execution.written.as_ref();
    written.map(|written| (written.stdout(), written.stderr())).unwrap_or_default()
}

fn artifacts(execution: &ExecutionRecord) -> Value {
    let paths = |list: &[Artifact]| -> Vec<Value> {
        list.iter().map(|artifact| artifact.path.as_str().into()).collect()
    };
    let changes = &execution.changes;
    json!({
        "created": paths(&changes.created),
        "modified": paths(&changes.modified),
        "deleted": paths(&changes.deleted),
    })
}

fn whole_ms(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "the result is rounded to a tenth of a mebibyte")]
fn mebibytes(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0
}
