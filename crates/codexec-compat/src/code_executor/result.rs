use std::time::Duration;

use codexec_server::mcp::{link_files, media_block};
use codexec_server::{
    FinishedExecution, TextBudget, explain_outcome, render_reply, render_value, resource_uri,
};
use codexec_types::{Limit, Outcome};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use super::calls::CallSummaries;

/// Returns the object that the schema promises, and a text: most clients show one or the other, so
/// both contain the output.
pub(super) fn result(
    execution: &FinishedExecution,
    calls: &CallSummaries,
    budget: TextBudget,
) -> CallToolResult {
    let error = find_error(execution, budget);
    let output = output(execution, budget);
    let mut reply = render_reply(execution, budget);
    if let Some(error) = &error {
        reply.text = match output.as_str() {
            "" => error.clone(),
            output => format!("{error}\n[output]\n{}", output.trim_end_matches('\n')),
        };
    }
    let mut content = vec![ContentBlock::text(reply.text)];
    let images = reply.images.into_iter();
    content.extend(images.map(media_block));
    content.extend(link_files(execution));
    let mut result = match error {
        Some(_) => CallToolResult::error(content),
        None => CallToolResult::success(content),
    };
    result.structured_content = Some(structured(execution, output, error, calls));
    result
}

/// Removes the text of a result that has everything in its structured content, for clients that
/// show no text then.
pub(super) fn remove_text(result: &mut CallToolResult) {
    if result.structured_content.is_some() {
        result.content.retain(|block| block.as_text().is_none());
    }
}

fn structured(
    execution: &FinishedExecution,
    output: String,
    error: Option<String>,
    calls: &CallSummaries,
) -> Value {
    let mut value = Map::new();
    let mut put = |name: &str, field: Value| value.insert(name.to_owned(), field);
    put("success", error.is_none().into());
    put("output", output.into());
    if let Some(error) = error {
        put("error", error.into());
    }
    let ms = u64::try_from(execution.duration.as_millis()).unwrap_or(u64::MAX);
    put("executionTimeMs", ms.into());
    put("toolCallsMade", json!(calls.names()));
    put("toolCallSummary", calls.summaries().into());
    if !execution.discovery_notes.is_empty() {
        put("discoveryNotes", json!(execution.discovery_notes));
    }
    Value::Object(value)
}

/// Returns the output, followed by the value as at a prompt.
fn output(execution: &FinishedExecution, budget: TextBudget) -> String {
    let mut output = execution.output.text().to_owned();
    if let Some(value) = execution.outcome.value().filter(|value| *value != "null") {
        if !output.is_empty() && !output.ends_with('\n') {
            output.push('\n');
        }
        output.push_str(&render_value(value));
    }
    budget_share(execution, budget).cut(&output, &whole_text_hint(execution))
}

/// Returns the error text, if the execution failed.
pub(super) fn find_error(execution: &FinishedExecution, budget: TextBudget) -> Option<String> {
    execution.outcome.code().map(|_| error_text(execution, budget))
}

fn error_text(execution: &FinishedExecution, budget: TextBudget) -> String {
    let error = match execution.outcome {
        Outcome::Stopped(Limit::Wall) => format!(
            "Execution timeout after {}; do less, or ask for more with timeoutMs",
            format_duration(execution.limits.wall)
        ),
        _ => explain_outcome(execution),
    };
    budget_share(execution, budget).cut(&error, &whole_text_hint(execution))
}

/// An error shares the budget with the output.
fn budget_share(execution: &FinishedExecution, budget: TextBudget) -> TextBudget {
    match execution.outcome.code() {
        Some(_) => budget.halved(),
        None => budget,
    }
}

fn whole_text_hint(execution: &FinishedExecution) -> String {
    format!("the whole is the resource {}", resource_uri(execution))
}

/// Formats like `1.50s`, `2m 5s`.
fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match duration.as_millis() {
        ms @ 0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{seconds:.2}s"),
        _ => format!("{}m {}s", duration.as_secs() / 60, duration.as_secs() % 60),
    }
}
