//! Finds an execution by the beginning of its id.

use codexec_functions::OwnFunction;
use serde_json::{Value, json};

use super::super::own_functions::{FunctionError, OwnFunctions};
use super::super::terminal_text::{field, items};

const PREFIX: &str = "exec_";
/// The length of a whole id without its prefix.
const ID_CHARS: usize = 32;
const PAGE: usize = 100;
/// A short beginning is looked for in this many pages, newest executions first.
const PAGES: usize = 50;

/// Returns the id that begins with this text, or the text itself if it is a whole id or none.
pub(super) async fn resolve(own: &OwnFunctions, text: &str) -> Result<String, FunctionError> {
    let start = text.strip_prefix(PREFIX).unwrap_or(text);
    let is_start = !start.is_empty() && start.chars().all(|c| c.is_ascii_hexdigit());
    if !is_start || start.len() >= ID_CHARS {
        return Ok(text.to_owned());
    }
    let start = format!("{PREFIX}{}", start.to_ascii_lowercase());
    let mut found: Vec<String> = Vec::new();
    for page in 0..PAGES {
        let args = json!({"limit": PAGE, "offset": page * PAGE});
        let value = own.call(OwnFunction::SearchExecutionLogs, args).await?.value;
        let results = items(&value, "results");
        let ids = results.iter().map(|log: &Value| field(log, "execution_id"));
        found.extend(ids.filter(|id| id.starts_with(&start)));
        if results.len() < PAGE {
            break;
        }
    }
    match found.as_slice() {
        [] => Ok(text.to_owned()),
        [id] => Ok(id.clone()),
        ids => {
            let shown: Vec<&str> = ids.iter().take(5).map(String::as_str).collect();
            let message = format!("{text:?} begins several ids: {}", shown.join(", "));
            Err(FunctionError { code: "EXECUTION_NOT_FOUND", message })
        }
    }
}
