//! The difference between two definitions, field by field, for the user who decides about it.
//! Invisible characters are written as escapes, so nothing can hide in it.

use serde_json::Value;

use codexec_types::{Json, is_hidden};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffSign {
    Added,
    Removed,
}

/// One line of a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct DiffLine {
    pub sign: DiffSign,
    pub text: String,
    /// The line has invisible characters.
    pub has_hidden: bool,
}

/// Returns the removed and added lines, in the order of the fields.
pub fn find_differences(before: Option<&Json>, after: Option<&Json>) -> Vec<DiffLine> {
    let (before, after) = (fields(before), fields(after));
    let mut lines = Vec::new();
    for (path, old) in &before {
        let new = after.iter().find(|(other, _)| other == path).map(|(_, new)| new);
        let (removed, added) = changed_lines(old, new.map_or(&[], Vec::as_slice));
        lines.extend(removed.iter().map(|text| line(DiffSign::Removed, path, text)));
        lines.extend(added.iter().map(|text| line(DiffSign::Added, path, text)));
    }
    for (path, new) in &after {
        if before.iter().all(|(other, _)| other != path) {
            lines.extend(new.iter().map(|text| line(DiffSign::Added, path, text)));
        }
    }
    lines
}

/// Returns every scalar value with its path; strings as lines.
fn fields(definition: Option<&Json>) -> Vec<(String, Vec<String>)> {
    let mut fields = Vec::new();
    if let Some(Ok(value)) = definition.map(Json::to_value) {
        collect("", &value, &mut fields);
    }
    fields
}

fn collect(path: &str, value: &Value, fields: &mut Vec<(String, Vec<String>)>) {
    match value {
        Value::Object(inner) if !inner.is_empty() => {
            for (key, value) in inner {
                let separator = if path.is_empty() { "" } else { "." };
                collect(&format!("{path}{separator}{key}"), value, fields);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, value) in items.iter().enumerate() {
                collect(&format!("{path}[{at}]"), value, fields);
            }
        }
        Value::String(text) => {
            fields.push((path.to_owned(), text.split('\n').map(ToOwned::to_owned).collect()));
        }
        other => fields.push((path.to_owned(), vec![other.to_string()])),
    }
}

/// Returns the lines of both without their common prefix and suffix.
fn changed_lines<'a>(old: &'a [String], new: &'a [String]) -> (&'a [String], &'a [String]) {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    (old.get(..old.len() - end).unwrap_or_default(), new.get(..new.len() - end).unwrap_or_default())
}

fn line(sign: DiffSign, path: &str, text: &str) -> DiffLine {
    let has_hidden = path.chars().chain(text.chars()).any(is_invisible);
    DiffLine {
        sign,
        text: format!("{}: {}", escape_invisible(path), escape_invisible(text)),
        has_hidden,
    }
}

/// Writes invisible characters as escapes.
fn escape_invisible(text: &str) -> String {
    let escape = |c: char| {
        if is_invisible(c) { c.escape_unicode().to_string() } else { c.to_string() }
    };
    text.chars().map(escape).collect()
}

fn is_invisible(c: char) -> bool {
    is_hidden(c) || c == '\t' || (c.is_whitespace() && c != ' ')
}

#[cfg(test)]
mod tests;
