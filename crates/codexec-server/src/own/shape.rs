//! Formats executions as one flat object, as in the toolset `codexec`.

use std::time::Duration;

use codexec_types::{FileChanges, Limit, Outcome};
use serde_json::{Value, json};

use crate::escaped_text::escape_name;
use crate::reply::{explain_outcome, render_value};
use crate::{FinishedExecution, TextBudget};

/// Formats the result of `execute_code` and `run_script`.
pub(super) fn execution(execution: &FinishedExecution, budget: Option<TextBudget>) -> Value {
    let streams = CutStreams::of(execution, budget);
    let mut value = json!({
        "success": execution.outcome.code().is_none(),
        "execution_id": execution.id.as_str(),
        "language": execution.language.name(),
        "stdout": streams.out,
        "stderr": streams.err,
        "exit_code": exit_code(&execution.outcome),
        "duration_ms": milliseconds(execution.duration),
        "truncated": streams.is_cut,
        "artifacts": artifact_paths(execution),
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
    add_details(&mut value, execution);
    value
}

/// Formats the result of `send_to_session`. As at a prompt, the value follows the output.
pub(super) fn session_execution(
    execution: &FinishedExecution,
    budget: Option<TextBudget>,
) -> Value {
    let mut streams = CutStreams::of(execution, None);
    if let Some(text) = execution.outcome.value().filter(|text| *text != "null") {
        if !streams.out.is_empty() && !streams.out.ends_with('\n') {
            streams.out.push('\n');
        }
        streams.out.push_str(&render_value(text));
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
        "artifacts": artifact_paths(execution),
    });
    add_details(&mut value, execution);
    value
}

/// Adds fields that most executions do not have.
fn add_details(value: &mut Value, execution: &FinishedExecution) {
    let Some(fields) = value.as_object_mut() else { return };
    if execution.outcome == Outcome::Stopped(Limit::Wall) {
        // The position that clients of this toolset expect.
        let place = fields.keys().position(|name| name == "truncated").unwrap_or(fields.len());
        fields.shift_insert(place, "timed_out".to_owned(), true.into());
    }
    if let Some(code) = execution.outcome.code() {
        fields.insert("error_code".to_owned(), code.into());
    }
    // The text of an error has its hint.
    if let (Outcome::Exited { .. } | Outcome::Returned(_), Some(hint)) =
        (&execution.outcome, &execution.hint)
    {
        fields.insert("hint".to_owned(), json!(hint));
    }
    if !execution.limits_met.is_empty() {
        let met: Vec<&str> = execution.limits_met.iter().map(|limit| limit.code()).collect();
        fields.insert("limits_met".to_owned(), json!(met));
    }
    if let Some(between) = &execution.changes.between_cells {
        fields.insert("artifacts_between_cells".to_owned(), json!(changed_paths(between)));
    }
    if let Some(nested) = &execution.changes.nested {
        fields.insert("artifacts_of_nested_code".to_owned(), json!(changed_paths(nested)));
    }
    if let Some(reason) = &execution.session_replaces {
        fields.insert("session_replaces_ended".to_owned(), json!(reason));
    }
    if !execution.discovery_notes.is_empty() {
        fields.insert("discovery_notes".to_owned(), json!(execution.discovery_notes));
    }
    if let Some(reason) = execution.session_ended {
        fields.insert("session_ended".to_owned(), reason.into());
    }
}

struct CutStreams {
    out: String,
    err: String,
    is_cut: bool,
}

impl CutStreams {
    /// Appends the error to stderr, as an interpreter does.
    fn of(execution: &FinishedExecution, budget: Option<TextBudget>) -> CutStreams {
        let mut err = execution.output.stderr();
        match &execution.outcome {
            Outcome::Returned(_) | Outcome::Exited { .. } | Outcome::Stopped(Limit::Wall) => {}
            Outcome::Threw(_) | Outcome::Stopped(_) | Outcome::Crashed(_) | Outcome::Cancelled => {
                if !err.is_empty() && !err.ends_with('\n') {
                    err.push('\n');
                }
                err.push_str(&explain_outcome(execution));
            }
        }
        let (out, is_out_cut) = cut(&execution.output.stdout(), budget);
        let (err, is_err_cut) = cut(&err, budget);
        // A program that was stopped would have written more.
        let is_stopped = matches!(execution.outcome, Outcome::Stopped(_));
        CutStreams { out, err, is_cut: is_out_cut || is_err_cut || is_stopped }
    }
}

/// Cuts a long text to its two ends, with a note that clients of this toolset expect. Tells if it
/// was cut.
pub(super) fn cut(text: &str, budget: Option<TextBudget>) -> (String, bool) {
    let Some(budget) = budget else { return (text.to_owned(), false) };
    match budget.split_ends(text) {
        Some((head, tail, left_out)) => {
            (format!("{head}\n\n[... truncated {left_out} characters ...]\n\n{tail}"), true)
        }
        None => (text.to_owned(), false),
    }
}

/// Rounds to three decimal places.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns the exit code as a shell would; `None` if the program did not end by itself.
pub fn exit_code(outcome: &Outcome) -> Option<i32> {
    match outcome {
        Outcome::Returned(_) => Some(0),
        Outcome::Threw(_) => Some(1),
        Outcome::Exited { code } => Some(*code),
        Outcome::Crashed(codexec_types::Crash::Killed { signal }) => Some(128 + signal),
        Outcome::Stopped(_) | Outcome::Crashed(_) | Outcome::Cancelled => None,
    }
}

/// Returns the paths of files that are new or changed.
pub fn artifact_paths(execution: &FinishedExecution) -> Vec<String> {
    changed_paths(&execution.changes)
}

fn changed_paths(changes: &FileChanges) -> Vec<String> {
    changes.created.iter().chain(&changes.modified).map(|file| escape_name(&file.path)).collect()
}
