//! Formats executions for an agent.

mod ending;
mod notes;

use std::fmt::Write as _;

use codexec_types::Image;

use crate::{ExecuteError, FinishedExecution, TextBudget};

pub use ending::explain_outcome;
pub use notes::render as render_notes;

/// A text and images for the agent. A guest's failure is a reply, so that the agent can read and
/// fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolReply {
    pub text: String,
    /// Shown after the text.
    pub images: Vec<Image>,
    pub is_error: bool,
}

impl ToolReply {
    pub fn success(text: String) -> ToolReply {
        ToolReply { text, images: Vec::new(), is_error: false }
    }

    pub fn error(text: String) -> ToolReply {
        ToolReply { text, images: Vec::new(), is_error: true }
    }
}

/// Formats an execution: the value alone if there is nothing else; otherwise output, value and
/// notes under headings.
pub fn render_reply(execution: &FinishedExecution, budget: TextBudget) -> ToolReply {
    let whole_hint = format!("the whole is the resource {}", resource_uri(execution));
    let notes = notes::render(execution);
    let budget = budget.without(notes.chars().count());
    let body = match execution.outcome.code() {
        None => {
            let value = execution.outcome.value();
            let has_more = !notes.is_empty() || !execution.images.shown.is_empty();
            match join_output_and_value(execution.output.text(), value) {
                Some(text) => budget.cut(&text, &whole_hint),
                None if has_more => String::new(),
                None => "null".to_owned(),
            }
        }
        // The error code comes first, however long the text is.
        Some(code) => {
            let problem = format!("{code}: {}", explain_outcome(execution));
            match execution.output.text().trim_end_matches('\n') {
                "" => budget.cut(&problem, &whole_hint),
                output => {
                    let half = budget.halved();
                    format!(
                        "{}\n[output]\n{}",
                        half.cut(&problem, &whole_hint),
                        half.cut(output, &whole_hint)
                    )
                }
            }
        }
    };
    let text = match (body.as_str(), notes.as_str()) {
        // An empty string is a value, but many clients take an empty block for an error.
        ("", "") if execution.images.count() == 0 => "\"\"".to_owned(),
        ("", "") => notes::image_count(execution),
        (body, "") => body.to_owned(),
        ("", notes) => notes.to_owned(),
        (body, notes) => format!("{body}\n{notes}"),
    };
    let is_error = execution.outcome.code().is_some();
    ToolReply { text, images: execution.images.shown.clone(), is_error }
}

/// Joins the complete output, and the value if there is one.
pub(crate) fn full_text(output: &str, value: Option<&str>) -> String {
    join_output_and_value(output, value).unwrap_or_else(|| "null".to_owned())
}

fn join_output_and_value(output: &str, value: Option<&str>) -> Option<String> {
    let output = output.trim_end_matches('\n');
    match (output, value) {
        ("", None | Some("null")) => None,
        (output, None | Some("null")) => Some(output.to_owned()),
        ("", Some(value)) => Some(render_value(value)),
        (output, Some(value)) => Some(format!("{output}\n[result]\n{}", render_value(value))),
    }
}

/// Formats the error of an execution that did not take place, with its causes.
pub fn render_failure(error: &ExecuteError) -> ToolReply {
    let mut text = format!("{}: {error}", error.code());
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        let _ = write!(text, ": {source}");
        cause = source.source();
    }
    ToolReply::error(text)
}

/// Returns the URI of the resource with the complete output and value.
pub fn resource_uri(execution: &FinishedExecution) -> String {
    format!("codexec://executions/{}", execution.id)
}

/// Formats a string as its text, anything else as JSON.
pub fn render_value(json: &str) -> String {
    match json.starts_with('"') {
        true => serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()),
        false => json.to_owned(),
    }
}

#[cfg(test)]
mod tests;
