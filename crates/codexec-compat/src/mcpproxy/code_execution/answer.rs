//! Formats executions as MCPProxy does.

use codexec_server::mcp::link_files;
use codexec_server::{FinishedExecution, TextBudget, explain_outcome, resource_uri};
use codexec_types::{Limit, Outcome, Thrown, ThrownCode};
use serde_json::{Map, Value};

use super::refusal::CodeRefusal;
use super::{CodeExecution, CodeExecutionStatus};

/// Formats `{"ok": true, "value": ..}` or `{"ok": false, "error": {"code": .., "message": ..,
/// "stack": ..}}`. Only a result that the budget has cut has one more key, `"truncated": true`.
pub(super) fn from_execution(
    execution: &FinishedExecution,
    budget: Option<TextBudget>,
) -> CodeExecution {
    let written = execution.output.text().trim_end_matches('\n');
    // Two texts share one budget.
    let budget = budget.map(|budget| if written.is_empty() { budget } else { budget.halved() });
    let whole = format!("the whole is the resource {}", resource_uri(execution));
    let cut = |text: &str| match budget {
        Some(budget) => budget.cut(text, &whole),
        None => text.to_owned(),
    };
    let text = match &execution.outcome {
        Outcome::Returned(value) => format_value(value.text(), cut(value.text())),
        Outcome::Threw(thrown) => format_thrown(execution, thrown, budget, &whole),
        Outcome::Stopped(limit) => format_stopped(execution, *limit),
        Outcome::Exited { .. } | Outcome::Crashed(_) | Outcome::Cancelled => {
            let code = execution.outcome.code().unwrap_or("RUNTIME_ERROR");
            format_error(code, &explain_outcome(execution), None)
        }
    };
    let mut output = cut(written);
    for note in &execution.discovery_notes {
        let line_break = if output.is_empty() { "" } else { "\n" };
        output.push_str(&format!("{line_break}[{note}]"));
    }
    CodeExecution {
        text,
        output,
        images: execution.images.shown.clone(),
        links: link_files(execution),
        came: if execution.outcome.code().is_none() {
            CodeExecutionStatus::Fine
        } else {
            CodeExecutionStatus::Failed
        },
    }
}

pub(super) fn from_refusal(refused: &CodeRefusal) -> CodeExecution {
    CodeExecution {
        text: format_error(refused.code, &refused.message, None),
        output: String::new(),
        images: Vec::new(),
        links: Vec::new(),
        came: CodeExecutionStatus::Refused,
    }
}

/// Copies the value's own text, so that no number is rounded on the way.
fn format_value(value: &str, shown: String) -> String {
    if shown == value {
        return format!("{{\"ok\":true,\"value\":{value}}}");
    }
    let shown = Value::String(shown);
    format!("{{\"ok\":true,\"value\":{shown},\"truncated\":true}}")
}

fn format_thrown(
    execution: &FinishedExecution,
    thrown: &Thrown,
    budget: Option<TextBudget>,
    whole: &str,
) -> String {
    let place = thrown.at.map(|at| format!("at line {}, column {}", at.line, at.column));
    let is_text_wrong = matches!(thrown.code, ThrownCode::SyntaxError | ThrownCode::TranspileError);
    let message = match &place {
        // A syntax error has no frames, so its position goes into the message.
        Some(place) if is_text_wrong => format!("{} {place}", thrown.message),
        Some(_) | None => thrown.message.clone(),
    };
    let stack = match (&thrown.stack, place) {
        (Some(line), Some(place)) if is_text_wrong => Some(format!("{place}\n{line}")),
        (Some(stack), _) => Some(stack.clone()),
        (None, place) => place,
    };
    let code = execution.outcome.code().unwrap_or("RUNTIME_ERROR");
    let Some(half) = budget.map(TextBudget::halved) else {
        return format_error(code, &message, stack.as_deref());
    };
    let stack = stack.map(|stack| half.cut(&stack, whole));
    format_error(code, &half.cut(&message, whole), stack.as_deref())
}

/// Uses MCPProxy's messages, where it has some.
fn format_stopped(execution: &FinishedExecution, limit: Limit) -> String {
    match limit {
        Limit::Wall => format_error(limit.code(), "JavaScript execution timed out", None),
        Limit::ToolCalls => {
            let most = execution.limits.tool_calls;
            let message = format!("Exceeded maximum tool calls limit ({most})");
            format_error(limit.code(), &message, None)
        }
        // MCPProxy knows only one kind of timeout.
        Limit::Cpu => format_error(Limit::Wall.code(), &explain_outcome(execution), None),
        Limit::Memory | Limit::Processes | Limit::OpenFiles | Limit::Disk | Limit::Output => {
            format_error(limit.code(), &explain_outcome(execution), None)
        }
    }
}

fn format_error(code: &str, message: &str, stack: Option<&str>) -> String {
    let mut error = Map::new();
    error.insert("code".to_owned(), code.into());
    error.insert("message".to_owned(), message.into());
    error.extend(stack.map(|stack| ("stack".to_owned(), stack.into())));
    format!("{{\"ok\":false,\"error\":{}}}", Value::Object(error))
}
