//! Extracts from a tool's result the value that a guest gets.

use codexec_types::cut_text;
use serde_json::{Map, Value};

/// Maximum length of an error text.
const ERROR_BYTES: usize = 4 << 10;

/// The reason why a result has no value.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ResultError {
    /// The result has `isError`; holds its text.
    #[error("{0}")]
    Failed(String),
    #[error("the tool asks for {0}, which is not supported yet")]
    Unfinished(&'static str),
}

/// Returns `structuredContent`, else the only text block (parsed if it is JSON as a whole), else
/// the content blocks. Links are data: nothing is fetched.
pub(crate) fn unwrap_result(result: Value) -> Result<Value, ResultError> {
    let Value::Object(mut result) = result else { return Ok(result) };
    if result.get("isError") == Some(&Value::Bool(true)) {
        return Err(ResultError::Failed(error_text(&result)));
    }
    match result.get("resultType").and_then(Value::as_str) {
        Some("input_required") => return Err(ResultError::Unfinished("input")),
        Some("task") => return Err(ResultError::Unfinished("a task")),
        Some(_) | None => {}
    }
    match result.remove("structuredContent") {
        None | Some(Value::Null) => {}
        Some(structured) => return Ok(structured),
    }
    match result.remove("content") {
        Some(Value::Array(mut blocks)) if blocks.len() == 1 => {
            Ok(blocks.pop().map_or(Value::Null, unwrap_block))
        }
        Some(Value::Array(blocks)) if blocks.is_empty() => Ok(Value::Null),
        Some(content) => Ok(content),
        // `toolResult` is from protocol versions before content blocks.
        None => Ok(result.remove("toolResult").unwrap_or(Value::Object(result))),
    }
}

fn unwrap_block(block: Value) -> Value {
    match block.get("text") {
        Some(Value::String(text)) if block.get("type").and_then(Value::as_str) == Some("text") => {
            parse_text(text)
        }
        _ => block,
    }
}

/// Parses objects, arrays, numbers, booleans and null; a JSON string stays text with its quotes.
fn parse_text(text: &str) -> Value {
    let is_candidate =
        text.trim_start().starts_with(|c: char| "{[-tfn".contains(c) || c.is_ascii_digit());
    let value = if is_candidate { serde_json::from_str(text).ok() } else { None };
    match value {
        // A number that JSON parsers would round stays text.
        Some(Value::Number(number)) if number.to_string() != text.trim() => text.into(),
        Some(value) => value,
        None => text.into(),
    }
}

fn error_text(result: &Map<String, Value>) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let texts: Vec<&str> = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("text").and_then(Value::as_str))
        .collect();
    match (texts.join("\n"), result.get("structuredContent")) {
        (text, _) if !text.trim().is_empty() => cut_text(&text, ERROR_BYTES),
        (_, Some(structured)) => cut_text(&structured.to_string(), ERROR_BYTES),
        (_, None) => "the tool failed and did not say why".to_owned(),
    }
}

#[cfg(test)]
mod tests;
