//! Arguments against a tool's schema, with a message that says how to write them right.

use jsonschema::{Draft, PatternOptions, Validator, error::ValidationErrorKind};
use serde_json::{Map, Value};

use crate::clean::{clean_line, cut};

/// Schemas come from upstreams: one that could make us work without end is not used.
const SCHEMA_STEPS: usize = 20_000;
const REGEX_BYTES: usize = 1 << 20;
const SHOWN_ERRORS: usize = 5;

/// What checks the arguments of one tool. A schema that cannot be used lets everything through:
/// the server itself will judge.
#[derive(Debug)]
pub(crate) struct Arguments {
    validator: Option<Validator>,
}

impl Arguments {
    pub(crate) fn new(schema: &Value) -> Arguments {
        let mut steps = Steps { root: schema, left: SCHEMA_STEPS, path: Vec::new() };
        let is_usable = steps.walk(schema);
        let build = || {
            jsonschema::options()
                .with_draft(draft(schema))
                .with_pattern_options(
                    PatternOptions::regex().size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES),
                )
                .should_validate_formats(false)
                .offline()
                .build(schema)
                .ok()
        };
        Arguments { validator: is_usable.then(build).flatten() }
    }

    /// What is wrong, in one sentence for each thing.
    pub(crate) fn check(&self, schema: &Value, args: &Value) -> Result<(), String> {
        let Some(validator) = &self.validator else { return Ok(()) };
        if validator.is_valid(args) {
            return Ok(());
        }
        let mut wrong: Vec<String> = validator
            .iter_errors(args)
            .take(SHOWN_ERRORS)
            .map(|error| {
                let at = field(&error.instance_path().to_string());
                cut(&clean_line(&sentence(&at, error.kind(), &error.to_string())), 400)
            })
            .collect();
        wrong.push(parameters(schema));
        Err(wrong.join("; "))
    }
}

fn draft(schema: &Value) -> Draft {
    match schema.get("$schema").and_then(Value::as_str) {
        Some(uri) if uri.contains("draft-07") => Draft::Draft7,
        Some(uri) if uri.contains("draft-04") => Draft::Draft4,
        Some(uri) if uri.contains("draft-06") => Draft::Draft6,
        Some(uri) if uri.contains("2019-09") => Draft::Draft201909,
        Some(_) | None => Draft::Draft202012,
    }
}

/// `/owner/0` as `owner[0]`.
fn field(pointer: &str) -> String {
    let mut out = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            out.push_str(&format!("[{part}]"));
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&part);
        }
    }
    out
}

fn sentence(at: &str, kind: &ValidationErrorKind, message: &str) -> String {
    let place = if at.is_empty() { "arguments".to_owned() } else { format!("`{at}`") };
    let join = |property: &str| {
        if at.is_empty() { format!("`{property}`") } else { format!("`{at}.{property}`") }
    };
    match kind {
        ValidationErrorKind::Required { property } => {
            format!("{} is missing", join(property.as_str().unwrap_or_default()))
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().take(5).map(|name| join(name)).collect();
            format!("{} is not a parameter", names.join(", "))
        }
        ValidationErrorKind::Enum { options } => format!("{place} must be one of {options}"),
        _ => format!("{place}: {}", cut(message, 300)),
    }
}

/// The parameters there are, the required ones marked.
fn parameters(schema: &Value) -> String {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    let names: Vec<String> = properties
        .into_iter()
        .flat_map(Map::keys)
        .map(|name| match required.contains(&name.as_str()) {
            true => format!("{name} (required)"),
            false => name.clone(),
        })
        .collect();
    match names.is_empty() {
        true => "it takes no named parameters".to_owned(),
        false => cut(&format!("parameters: {}", names.join(", ")), 600),
    }
}

/// Counts what checking could come to at worst, with every reference followed. A schema that
/// refers to itself could double the work with each level of the arguments, so it counts as
/// too much.
struct Steps<'a> {
    root: &'a Value,
    left: usize,
    path: Vec<&'a str>,
}

impl<'a> Steps<'a> {
    fn walk(&mut self, schema: &'a Value) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        match schema {
            Value::Object(fields) => {
                fields.iter().all(|(key, value)| match (key.as_str(), value) {
                    ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(to)) => {
                        self.follow(to)
                    }
                    // Counted where they are referred to.
                    ("$defs" | "definitions", _) => true,
                    (_, value) => self.walk(value),
                })
            }
            Value::Array(list) => list.iter().all(|value| self.walk(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }

    fn follow(&mut self, to: &'a str) -> bool {
        let target = to.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(target) = target.filter(|_| !self.path.contains(&to)) else { return false };
        self.path.push(to);
        let is_fine = self.walk(target);
        self.path.pop();
        is_fine
    }
}

#[cfg(test)]
mod tests;
