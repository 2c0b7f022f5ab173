//! An execution as a line of a log file: the fields that readers of such files know, then ours.

use codexec_types::{Artifact, rfc3339};
use serde_json::{Map, Value, json};

use crate::execution::{Call, Execution, Kind};

/// How the line of this execution begins, and no other.
pub(crate) fn beginning(execution_id: &str) -> String {
    format!("{{\"type\":\"execution\",\"execution_id\":\"{execution_id}\"")
}

/// One line, without its end.
pub(crate) fn line(execution: &Execution) -> String {
    let mut fields = Map::new();
    fields.insert("type".to_owned(), "execution".into());
    fields.insert("execution_id".to_owned(), execution.summary.id.as_str().into());
    let known = if execution.summary.session.is_some() {
        of_session(execution)
    } else {
        of_one_shot(execution)
    };
    for part in [known, ours(execution)] {
        if let Value::Object(part) = part {
            fields.extend(part);
        }
    }
    Value::Object(fields).to_string()
}

fn of_one_shot(execution: &Execution) -> Value {
    let summary = &execution.summary;
    let (stdout, stderr) = streams(execution);
    json!({
        "language": summary.language,
        "code": execution.code,
        "stdin": null,
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": summary.exit_status(),
        "timed_out": summary.kind == Kind::Timeout,
        "duration_ms": summary.duration.map(whole_ms),
        "memory_peak_mb": summary.peak_memory_bytes.map(mebibytes),
        "sandbox_mode": SANDBOX_MODE,
        "working_dir": execution.working_dir,
        "artifacts": artifacts(execution),
        "guardian": null,
        "context": execution.context,
        "executed_at": rfc3339(summary.started),
    })
}

fn of_session(execution: &Execution) -> Value {
    let summary = &execution.summary;
    let (stdout, stderr) = streams(execution);
    json!({
        "session_id": summary.session.as_ref().map(codexec_types::SessionId::as_str),
        "code": execution.code,
        "stdout": stdout,
        "stderr": stderr,
        "exit_code": summary.exit_status(),
        "duration_ms": summary.duration.map(whole_ms),
        "at": rfc3339(summary.started),
        "language": summary.language,
        "timed_out": summary.kind == Kind::Timeout,
        "memory_peak_mb": summary.peak_memory_bytes.map(mebibytes),
        "sandbox_mode": SANDBOX_MODE,
        "working_dir": execution.working_dir,
        "artifacts": artifacts(execution),
        "guardian": null,
        "context": execution.context,
    })
}

fn ours(execution: &Execution) -> Value {
    let summary = &execution.summary;
    let layers: Vec<&str> =
        summary.posture.as_deref().map(|layers| layers.split(',').collect()).unwrap_or_default();
    let script = summary.script.as_ref();
    let calls: Vec<Value> = execution.calls.iter().map(call).collect();
    json!({
        "status": summary.kind.name(),
        "error_code": summary.error_code,
        "error_message": summary.message,
        "value": execution.value.as_deref().map(json_or_text),
        "input": json_or_text(&execution.input),
        "args": execution.args,
        "script": script.map(|(name, version)| json!({"name": name, "version": version})),
        "principal": execution.principal,
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
        "packages_installed": execution.packages,
        "ended_at": summary.ended.map(rfc3339),
    })
}

fn call(call: &Call) -> Value {
    json!({
        "server": call.server,
        "tool": call.tool,
        "args": json_or_text(&call.args),
        "duration_ms": call.duration.map(|took| took.as_secs_f64() * 1_000.0),
        "error_code": call.error_code,
        "error_message": call.message,
        "result_bytes": call.result_bytes,
    })
}

const SANDBOX_MODE: &str = "process";

/// What was kept of a JSON text may be its beginning only; that is told as the text it is.
fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn streams(execution: &Execution) -> (String, String) {
    let written = execution.written.as_ref();
    written.map(|written| (written.stdout(), written.stderr())).unwrap_or_default()
}

fn artifacts(execution: &Execution) -> Value {
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

#[expect(clippy::cast_precision_loss, reason = "a tenth of a mebibyte is all that is told")]
fn mebibytes(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0
}
