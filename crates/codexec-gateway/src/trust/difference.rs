//! What has changed between two definitions, field by field, for a person who has to decide.
//! Nothing in it can hide: what has no shape on a screen is spelt out.

use codexec_types::{Json, is_hidden};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Added,
    Removed,
}

/// One line of a difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub sign: Sign,
    pub text: String,
    /// There were characters in it that nobody would have seen.
    pub has_hidden: bool,
}

/// What was taken out and what was put in, in the order of the fields.
pub(crate) fn difference(before: Option<&Json>, after: Option<&Json>) -> Vec<Line> {
    let (before, after) = (fields(before), fields(after));
    let mut lines = Vec::new();
    for (path, old) in &before {
        let new = after.iter().find(|(other, _)| other == path).map(|(_, new)| new);
        let (taken, put) = changed(old, new.map_or(&[], Vec::as_slice));
        lines.extend(taken.iter().map(|text| line(Sign::Removed, path, text)));
        lines.extend(put.iter().map(|text| line(Sign::Added, path, text)));
    }
    for (path, new) in &after {
        if before.iter().all(|(other, _)| other != path) {
            lines.extend(new.iter().map(|text| line(Sign::Added, path, text)));
        }
    }
    lines
}

/// Every value that is not a list or an object, with the way to it; texts line by line.
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
                let joint = if path.is_empty() { "" } else { "." };
                collect(&format!("{path}{joint}{key}"), value, fields);
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

/// The lines of both without those that they begin and end with in common.
fn changed<'a>(old: &'a [String], new: &'a [String]) -> (&'a [String], &'a [String]) {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (old.get(start..).unwrap_or_default(), new.get(start..).unwrap_or_default());
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    (old.get(..old.len() - end).unwrap_or_default(), new.get(..new.len() - end).unwrap_or_default())
}

fn line(sign: Sign, path: &str, text: &str) -> Line {
    let has_hidden = path.chars().chain(text.chars()).any(is_unseen);
    Line { sign, text: format!("{}: {}", visible(path), visible(text)), has_hidden }
}

/// What has no shape is written by its number.
fn visible(text: &str) -> String {
    let spell = |c: char| {
        if is_unseen(c) { c.escape_unicode().to_string() } else { c.to_string() }
    };
    text.chars().map(spell).collect()
}

fn is_unseen(c: char) -> bool {
    is_hidden(c) || c == '\t' || (c.is_whitespace() && c != ' ')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: Option<&Value>, after: &Value, expected: &[&str]) {
        let before = before.map(Json::from_value);
        let lines = difference(before.as_ref(), Some(&Json::from_value(after)));
        let shown = lines.iter().map(|line| {
            let sign = if line.sign == Sign::Added { '+' } else { '-' };
            format!("{sign} {}{}", line.text, if line.has_hidden { " (hidden)" } else { "" })
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_change_is_shown_where_it_is() {
        let before = json!({"name": "a", "description": "one\ntwo\nthree",
            "inputSchema": {"type": "object", "required": ["x"]}});
        let after = json!({"name": "a", "description": "one\n2\nthree",
            "inputSchema": {"required": ["x", "y"], "type": "object"}, "_meta": {"n": 1, "e": {}}});
        check(Some(&before), &before, &[]);
        let lines = [
            "- description: two",
            "+ description: 2",
            "+ inputSchema.required[1]: y",
            "+ _meta.n: 1",
            "+ _meta.e: {}",
        ];
        check(Some(&before), &after, &lines);
        check(None, &json!({"name": "a"}), &["+ name: a"]);
    }

    #[test]
    fn up_4_nothing_hides_in_a_difference() {
        let before = json!({"name": "a", "description": "plain"});
        let after = json!({"name": "a", "description": "plain\u{200b}\u{e0041}\u{1b}[2K\r"});
        let shown = "+ description: plain\\u{200b}\\u{e0041}\\u{1b}[2K\\u{d} (hidden)";
        check(Some(&before), &after, &["- description: plain", shown]);
        let key = json!({"name": "a", "description": "plain", "x\u{202e}y": 1});
        check(Some(&before), &key, &["+ x\\u{202e}y: 1 (hidden)"]);
    }
}
