//! `x-mcp-header` in a tool's schema: the arguments that a server wants in HTTP headers.

use std::collections::HashSet;

use reqwest::header::HeaderName;
use serde_json::{Map, Value};

/// The limit on headers for one tool.
const HEADERS: usize = 32;
const DEPTH: usize = 32;
const KEY: &str = "x-mcp-header";

/// An argument, and the header it is copied to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MirroredArgument {
    pub(super) name: HeaderName,
    path: Vec<String>,
}

impl MirroredArgument {
    pub(super) fn argument<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(arguments, |value, key| value.get(key))
    }
}

/// Why a tool's header annotations are invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(super) enum BadHeader {
    #[error("`x-mcp-header` is not on an argument")]
    Misplaced,
    #[error("`x-mcp-header` is not a valid header name")]
    Name,
    #[error("`x-mcp-header` names one header twice")]
    Twice,
    #[error("`x-mcp-header` is on an argument that is not a string, integer or boolean")]
    Type,
    #[error("too many `x-mcp-header` annotations")]
    Many,
}

/// Returns the arguments that a tool with this schema wants in headers.
pub(super) fn find_mirrored_arguments(schema: &Value) -> Result<Vec<MirroredArgument>, BadHeader> {
    let mut found = Vec::new();
    let Some(schema) = schema.as_object() else { return Ok(found) };
    if schema.contains_key(KEY) {
        return Err(BadHeader::Misplaced);
    }
    collect_mirrored(schema, &mut Vec::new(), &mut found)?;
    let mut names = HashSet::new();
    if !found.iter().all(|header| names.insert(&header.name)) {
        return Err(BadHeader::Twice);
    }
    if found.len() > HEADERS {
        return Err(BadHeader::Many);
    }
    Ok(found)
}

/// Searches `schema`, which `path` reaches through `properties` only.
fn collect_mirrored(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut Vec<MirroredArgument>,
) -> Result<(), BadHeader> {
    if path.len() > DEPTH {
        return Err(BadHeader::Misplaced);
    }
    for (key, value) in schema {
        match (key.as_str(), value.as_object()) {
            (KEY | "default" | "const" | "enum" | "examples", _) => {}
            ("properties", Some(properties)) => {
                for (name, property) in properties {
                    let Some(property) = property.as_object() else { continue };
                    path.push(name.clone());
                    if let Some(header) = property.get(KEY) {
                        found.push(MirroredArgument {
                            name: header_name(header, property)?,
                            path: path.clone(),
                        });
                    }
                    collect_mirrored(property, path, found)?;
                    path.pop();
                }
            }
            (_, _) if contains_annotation(value, DEPTH) => return Err(BadHeader::Misplaced),
            (_, _) => {}
        }
    }
    Ok(())
}

fn header_name(header: &Value, property: &Map<String, Value>) -> Result<HeaderName, BadHeader> {
    let kind = property.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("string" | "integer" | "boolean")) {
        return Err(BadHeader::Type);
    }
    let name = header.as_str().filter(|name| !name.is_empty()).ok_or(BadHeader::Name)?;
    HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()).map_err(|_| BadHeader::Name)
}

/// Finds the annotation outside of `properties`, where it is invalid unless it is data.
fn contains_annotation(value: &Value, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    match value {
        Value::Object(object) => object.iter().any(|(key, value)| match key.as_str() {
            KEY => true,
            "default" | "const" | "enum" | "examples" => false,
            _ => contains_annotation(value, depth - 1),
        }),
        Value::Array(items) => items.iter().any(|item| contains_annotation(item, depth - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests;
