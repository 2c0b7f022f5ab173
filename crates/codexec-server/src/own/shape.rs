//! Executions in the shape that seed users know: one flat object.

use std::time::Duration;

use codexec_types::{Changes, Limit, Outcome};
use serde_json::{Value, json};

use crate::plain::plain;
use crate::reply::{explanation, shown};
use crate::{Budget, Execution};

/// What `execute_code` and `run_script` give.
pub(super) fn execution(execution: &Execution, budget: Option<Budget>) -> Value {
    let streams = Streams::of(execution, budget);
    let mut value = json!({
        "success": execution.outcome.code().is_none(),
        "execution_id": execution.id.as_str(),
        "language": execution.language.name(),
        "stdout": streams.out,
        "stderr": streams.err,
        "exit_code": exit_code(&execution.outcome),
        "duration_ms": milliseconds(execution.duration),
        "truncated": streams.is_cut,
        "artifacts": artifacts(execution),
    });
    let returned = execution.outcome.value().filter(|text| *text != "null");
    if let (Some(fields), Some(text)) = (value.as_object_mut(), returned) {
        let (result, is_cut) = cut(text, budget);
        let result = match is_cut {
            true => Value::String(result),
            false => serde_json::from_str(text).unwrap_or(Value::String(result)),
        };
        fields.insert("result".to_owned(), result);
    }
    more(&mut value, execution);
    value
}

/// What `send_to_session` gives. A value is shown as it is at a prompt: at the end of the output.
pub(super) fn sent(execution: &Execution, budget: Option<Budget>) -> Value {
    let mut streams = Streams::of(execution, None);
    if let Some(text) = execution.outcome.value().filter(|text| *text != "null") {
        if !streams.out.is_empty() && !streams.out.ends_with('\n') {
            streams.out.push('\n');
        }
        streams.out.push_str(&shown(text));
    }
    let (out, is_out_cut) = cut(&streams.out, budget);
    let (err, is_err_cut) = cut(&streams.err, budget);
    let mut value = json!({
        "success": execution.outcome.code().is_none(),
        "execution_id": execution.id.as_str(),
        "session_id": execution.session.as_ref().map(codexec_types::SessionId::as_str),
        "stdout": out,
        "stderr": err,
        "duration_ms": milliseconds(execution.duration),
        "truncated": streams.is_cut || is_out_cut || is_err_cut,
        "artifacts": artifacts(execution),
    });
    more(&mut value, execution);
    value
}

/// Only what is worth saying: most executions have none of it.
fn more(value: &mut Value, execution: &Execution) {
    let Some(fields) = value.as_object_mut() else { return };
    if execution.outcome == Outcome::Stopped(Limit::Wall) {
        // Where the clients of this toolset have always found it.
        let place = fields.keys().position(|name| name == "truncated").unwrap_or(fields.len());
        fields.shift_insert(place, "timed_out".to_owned(), true.into());
    }
    if let Some(code) = execution.outcome.code() {
        fields.insert("error_code".to_owned(), code.into());
    }
    if !execution.limits_met.is_empty() {
        let met: Vec<&str> = execution.limits_met.iter().map(|limit| limit.code()).collect();
        fields.insert("limits_met".to_owned(), json!(met));
    }
    if let Some(between) = &execution.changes.between_cells {
        fields.insert("artifacts_between_cells".to_owned(), json!(paths_of(between)));
    }
    if let Some(reason) = execution.session_ended {
        fields.insert("session_ended".to_owned(), reason.into());
    }
}

struct Streams {
    out: String,
    err: String,
    is_cut: bool,
}

impl Streams {
    /// What went wrong stands at the end of standard error, as an interpreter would put it.
    fn of(execution: &Execution, budget: Option<Budget>) -> Streams {
        let mut err = execution.output.stderr();
        match &execution.outcome {
            Outcome::Returned(_) | Outcome::Exited { .. } | Outcome::Stopped(Limit::Wall) => {}
            Outcome::Threw(_) | Outcome::Stopped(_) | Outcome::Crashed(_) | Outcome::Cancelled => {
                if !err.is_empty() && !err.ends_with('\n') {
                    err.push('\n');
                }
                err.push_str(&explanation(execution));
            }
        }
        let (out, is_out_cut) = cut(&execution.output.stdout(), budget);
        let (err, is_err_cut) = cut(&err, budget);
        // A program that was stopped had more to say.
        let is_stopped = matches!(execution.outcome, Outcome::Stopped(_));
        Streams { out, err, is_cut: is_out_cut || is_err_cut || is_stopped }
    }
}

/// The two ends of a long text, as these clients know it, and whether it was cut.
pub(super) fn cut(text: &str, budget: Option<Budget>) -> (String, bool) {
    let Some(budget) = budget else { return (text.to_owned(), false) };
    match budget.ends(text) {
        Some((head, tail, left_out)) => {
            (format!("{head}\n\n[... truncated {left_out} characters ...]\n\n{tail}"), true)
        }
        None => (text.to_owned(), false),
    }
}

/// With three digits behind the point.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// As a shell counts it; none where the program did not end by itself.
pub(crate) fn exit_code(outcome: &Outcome) -> Option<i32> {
    match outcome {
        Outcome::Returned(_) => Some(0),
        Outcome::Threw(_) => Some(1),
        Outcome::Exited { code } => Some(*code),
        Outcome::Crashed(codexec_types::Crash::Killed { signal }) => Some(128 + signal),
        Outcome::Stopped(_) | Outcome::Crashed(_) | Outcome::Cancelled => None,
    }
}

/// The files that are new or changed.
fn artifacts(execution: &Execution) -> Vec<String> {
    paths_of(&execution.changes)
}

fn paths_of(changes: &Changes) -> Vec<String> {
    changes.created.iter().chain(&changes.modified).map(|file| plain(&file.path)).collect()
}
