//! The parameters of a script: a JSON Schema that its input is checked against before a run.

use codexec_types::is_hidden;
use jsonschema::{Draft, PatternOptions, Validator, error::ValidationErrorKind};
use serde_json::{Map, Value};

/// THREAT[SCR-5]: whoever saves a script writes its schema. One that could make us work without end is refused.
const SCHEMA_STEPS: usize = 20_000;
const SCHEMA_DEPTH: usize = 64;
const REGEX_BYTES: usize = 1 << 20;
const SHOWN_ERRORS: usize = 5;
const SHOWN_CHARS: usize = 300;

pub(crate) fn validator(schema: &Value) -> Result<Validator, String> {
    let Value::Object(fields) = schema else {
        return Err("it is not an object like {\"type\": \"object\", \"properties\": {}}".into());
    };
    if fields.get("type").is_some_and(|kind| kind != "object") {
        return Err("its `type` must be \"object\"".to_owned());
    }
    let mut steps = Steps { root: schema, left: SCHEMA_STEPS, path: Vec::new() };
    if !steps.walk(schema, 0) {
        return Err("it refers to itself or to another place, or is too large".to_owned());
    }
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(
            PatternOptions::regex().size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES),
        )
        .should_validate_formats(false)
        .offline()
        .build(schema)
        .map_err(|error| shown(&error.to_string()))
}

/// What is wrong with the input, in one sentence for each thing.
pub(crate) fn check(schema: &Value, input: &Value) -> Result<(), Vec<String>> {
    let validator = validator(schema).map_err(|why| vec![why])?;
    if validator.is_valid(input) {
        return Ok(());
    }
    let mut wrong: Vec<String> = validator
        .iter_errors(input)
        .take(SHOWN_ERRORS)
        .map(|error| {
            let at = place(&error.instance_path().to_string());
            shown(&sentence(&at, error.kind(), &error.to_string()))
        })
        .collect();
    wrong.push(shown(&parameters(schema)));
    Err(wrong)
}

/// `/owner/0` as `input.owner[0]`.
fn place(pointer: &str) -> String {
    let mut out = "input".to_owned();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        match part.bytes().all(|byte| byte.is_ascii_digit()) {
            true => out.push_str(&format!("[{part}]")),
            false => out.push_str(&format!(".{part}")),
        }
    }
    out
}

fn sentence(at: &str, kind: &ValidationErrorKind, message: &str) -> String {
    match kind {
        ValidationErrorKind::Required { property } => {
            format!("`{at}.{}` is missing", property.as_str().unwrap_or_default())
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> =
                unexpected.iter().take(5).map(|name| format!("`{at}.{name}`")).collect();
            format!("{} is not a parameter", names.join(", "))
        }
        ValidationErrorKind::Enum { options } => format!("`{at}` must be one of {options}"),
        _ => format!("`{at}`: {message}"),
    }
}

/// The parameters there are, the required ones marked.
fn parameters(schema: &Value) -> String {
    let required: Vec<&Value> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<String> = properties
        .into_iter()
        .flat_map(Map::keys)
        .map(|name| match required.iter().any(|required| *required == name.as_str()) {
            true => format!("{name} (required)"),
            false => name.clone(),
        })
        .collect();
    match names.is_empty() {
        true => "it takes no named parameters".to_owned(),
        false => format!("parameters: {}", names.join(", ")),
    }
}

fn shown(text: &str) -> String {
    let mut shown: String = text.chars().filter(|&c| !is_hidden(c)).take(SHOWN_CHARS).collect();
    if text.chars().count() > SHOWN_CHARS {
        shown.push('…');
    }
    shown
}

/// Counts what checking could come to at worst, with every reference followed. A schema that
/// refers to itself could double the work with each level of the input, so it counts as too much.
struct Steps<'a> {
    root: &'a Value,
    left: usize,
    path: Vec<&'a str>,
}

impl<'a> Steps<'a> {
    fn walk(&mut self, schema: &'a Value, depth: usize) -> bool {
        let Some(left) = self.left.checked_sub(1).filter(|_| depth < SCHEMA_DEPTH) else {
            return false;
        };
        self.left = left;
        match schema {
            Value::Object(fields) => {
                fields.iter().all(|(key, value)| match (key.as_str(), value) {
                    ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                        self.follow(to, depth)
                    }
                    // Counted where they are referred to.
                    ("$defs" | "definitions", _) => true,
                    (_, value) => self.walk(value, depth + 1),
                })
            }
            Value::Array(list) => list.iter().all(|value| self.walk(value, depth + 1)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }

    fn follow(&mut self, to: &'a str, depth: usize) -> bool {
        let target = to.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target.filter(|_| !self.path.contains(&to)) else { return false };
        self.path.push(to);
        let is_fine = self.walk(target, depth + 1);
        self.path.pop();
        is_fine
    }
}

#[cfg(test)]
mod tests;
