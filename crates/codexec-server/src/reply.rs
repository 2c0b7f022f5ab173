//! Formats executions for an agent.

mod ending;
mod left;

use std::fmt::Write as _;

use codexec_types::Image;

use crate::{Budget, ExecuteError, Execution};

pub use ending::explanation;
pub(crate) use left::text as left_behind;

/// A text and images for the agent. A guest's failure is a reply, so that the agent can read and
/// fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub text: String,
    /// Shown after the text.
    pub images: Vec<Image>,
    pub is_error: bool,
}

impl Reply {
    pub(crate) fn fine(text: String) -> Reply {
        Reply { text, images: Vec::new(), is_error: false }
    }

    pub(crate) fn error(text: String) -> Reply {
        Reply { text, images: Vec::new(), is_error: true }
    }
}

/// Formats an execution: the value alone if there is nothing else; otherwise output, value and
/// notes under headings.
pub fn reply(execution: &Execution, budget: Budget) -> Reply {
    let kept = format!("the whole is the resource {}", resource_uri(execution));
    let left = left::text(execution);
    let budget = budget.without(left.chars().count());
    let body = match execution.outcome.code() {
        None => {
            let value = execution.outcome.value();
            let has_more = !left.is_empty() || !execution.images.shown.is_empty();
            match said(execution.output.text(), value) {
                Some(text) => budget.cut(&text, &kept),
                None if has_more => String::new(),
                None => "null".to_owned(),
            }
        }
        // The error code comes first, however long the text is.
        Some(code) => {
            let problem = format!("{code}: {}", explanation(execution));
            match execution.output.text().trim_end_matches('\n') {
                "" => budget.cut(&problem, &kept),
                output => {
                    let half = budget.halved();
                    format!("{}\n[output]\n{}", half.cut(&problem, &kept), half.cut(output, &kept))
                }
            }
        }
    };
    let text = match (body.as_str(), left.as_str()) {
        // An empty string is a value, but many clients take an empty block for an error.
        ("", "") if execution.images.count() == 0 => "\"\"".to_owned(),
        ("", "") => left::image_count(execution),
        (body, "") => body.to_owned(),
        ("", left) => left.to_owned(),
        (body, left) => format!("{body}\n{left}"),
    };
    let is_error = execution.outcome.code().is_some();
    Reply { text, images: execution.images.shown.clone(), is_error }
}

/// Joins the complete output, and the value if there is one.
pub(crate) fn whole(output: &str, value: Option<&str>) -> String {
    said(output, value).unwrap_or_else(|| "null".to_owned())
}

fn said(output: &str, value: Option<&str>) -> Option<String> {
    let output = output.trim_end_matches('\n');
    match (output, value) {
        ("", None | Some("null")) => None,
        (output, None | Some("null")) => Some(output.to_owned()),
        ("", Some(value)) => Some(shown(value)),
        (output, Some(value)) => Some(format!("{output}\n[result]\n{}", shown(value))),
    }
}

/// Formats the error of an execution that did not take place, with its causes.
pub fn failure(error: &ExecuteError) -> Reply {
    let mut text = format!("{}: {error}", error.code());
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        let _ = write!(text, ": {source}");
        cause = source.source();
    }
    Reply::error(text)
}

/// Returns the URI of the resource with the complete output and value.
pub(crate) fn resource_uri(execution: &Execution) -> String {
    format!("codexec://executions/{}", execution.id)
}

/// Formats a string as its text, anything else as JSON.
pub(crate) fn shown(json: &str) -> String {
    match json.starts_with('"') {
        true => serde_json::from_str(json).unwrap_or_else(|_| json.to_owned()),
        false => json.to_owned(),
    }
}

#[cfg(test)]
mod tests;
