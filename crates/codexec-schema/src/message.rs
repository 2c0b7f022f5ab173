//! Messages about problems of a value, which say what is allowed.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

const SHOWN_BYTES: usize = 120;
/// More than of a value, because the reader needs the allowed choices.
const SHOWN_RULE_BYTES: usize = 300;
const SHOWN_NAMES: usize = 5;
const PARAMETERS_BYTES: usize = 600;

/// One step of a path into a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathStep<'a> {
    Name(&'a str),
    Index(usize),
}

/// Renders a path below `root`, for example `input.labels[0]`.
pub(crate) fn render_path(root: &str, path: &[PathStep<'_>]) -> String {
    let mut text = root.to_owned();
    for step in path {
        match step {
            PathStep::Name(name) if text.is_empty() => text.push_str(&cut(name)),
            PathStep::Name(name) => {
                text.push('.');
                text.push_str(&cut(name));
            }
            PathStep::Index(index) => {
                let _ = write!(text, "[{index}]");
            }
        }
    }
    text
}

/// Quotes a path. The empty path is `arguments`.
pub(crate) fn quote(path: &str) -> String {
    if path.is_empty() { "arguments".to_owned() } else { format!("`{path}`") }
}

/// Renders the beginning of a value's JSON text. Long values are not rendered entirely.
pub(crate) fn show(value: &Value) -> String {
    show_up_to(value, SHOWN_BYTES)
}

pub(crate) fn show_rule(rule: &Value) -> String {
    show_up_to(rule, SHOWN_RULE_BYTES)
}

fn show_up_to(value: &Value, max_bytes: usize) -> String {
    let mut writer = TruncatingWriter { text: String::new(), max_bytes };
    if write!(writer, "{value}").is_err() {
        writer.text.push('…');
    }
    writer.text
}

pub(crate) fn cut(text: &str) -> String {
    match text.get(..text.floor_char_boundary(SHOWN_BYTES)) {
        Some(head) if head.len() < text.len() => format!("{head}…"),
        Some(_) | None => text.to_owned(),
    }
}

/// Renders the message for fields that are not allowed below a path.
pub(crate) fn render_unknown_fields(path: &str, names: &[&str]) -> String {
    let join = |name: &&str| match path {
        "" => format!("`{}`", cut(name)),
        path => format!("`{path}.{}`", cut(name)),
    };
    let names: Vec<String> = names.iter().take(SHOWN_NAMES).map(join).collect();
    format!("{} is not a parameter", names.join(", "))
}

/// Lists the parameters of a schema in a sentence of limited length, with required ones marked.
pub fn list_parameters(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required =
        |name: &str| required.is_some_and(|list| list.iter().take(1_000).any(|one| one == name));
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut text = String::new();
    for name in properties.into_iter().flat_map(Map::keys) {
        if text.len() > PARAMETERS_BYTES {
            text.push_str(", …");
            break;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&cut(name));
        if is_required(name) {
            text.push_str(" (required)");
        }
    }
    match text.is_empty() {
        true => "it takes no named parameters".to_owned(),
        false => format!("parameters: {text}"),
    }
}

/// A writer that fails once its text is full.
struct TruncatingWriter {
    text: String,
    max_bytes: usize,
}

impl fmt::Write for TruncatingWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let free = self.max_bytes.saturating_sub(self.text.len());
        let head = text.get(..text.floor_char_boundary(free)).unwrap_or_default();
        self.text.push_str(head);
        if head.len() < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}
