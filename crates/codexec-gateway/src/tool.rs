//! One tool: the definition a server sent, and the cleaned parts that we use.

use std::sync::{OnceLock, atomic::AtomicU32};

use codexec_types::{Json, clean_line, clean_text, cut_text};
use codexec_typings::{Typings, TypingsLanguage};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::hints::ToolHints;

const NAME_CHARACTERS: usize = 128;
const DESCRIPTION_BYTES: usize = 16 << 10;
const SUMMARY_BYTES: usize = 200;
const LONG_BYTES: usize = 32 << 10;
/// The part of a parameter's description that is searched.
const PARAMETER_BYTES: usize = 1 << 10;

#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    /// Cleaned and cut: safe to show.
    pub(crate) description: String,
    /// The names and descriptions of its parameters, cleaned.
    pub(crate) parameters: Vec<(String, String)>,
    pub(crate) has_output_schema: bool,
    pub(crate) hints: ToolHints,
    /// The complete definition as received. Arguments are checked against it and hashes are made
    /// from it; it is never shown.
    pub(crate) raw: Json,
    /// Parsed on first use: most tools are only searched.
    schemas: OnceLock<Schemas>,
    raw_input_schema: OnceLock<Option<Value>>,
    typescript: OnceLock<String>,
    definition_hash: OnceLock<String>,
    /// The number of results whose shape was recorded.
    pub(crate) recorded_results: AtomicU32,
}

/// The input and output schemas, cleaned.
#[derive(Debug)]
struct Schemas {
    input: Value,
    output: Option<Value>,
}

/// Why a tool is left out of the catalogue.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum InvalidTool {
    #[error("a tool without a name was left out")]
    Nameless,
    #[error(
        "tool {0:?} was left out: a name has 1 to {NAME_CHARACTERS} characters, all of them visible"
    )]
    Name(String),
}

impl Tool {
    /// Drops or repairs invalid fields. Only an invalid name makes the tool invalid.
    pub(crate) fn read(raw: &Value) -> Result<Tool, InvalidTool> {
        Tool::read_as(raw, Json::from_value(raw))
    }

    /// Does the same for a definition in its original text.
    pub(crate) fn read_text(text: &Json) -> Result<Tool, InvalidTool> {
        let raw = text.to_value().map_err(|_| InvalidTool::Nameless)?;
        Tool::read_as(&raw, text.clone())
    }

    fn read_as(raw: &Value, text: Json) -> Result<Tool, InvalidTool> {
        let name = raw.get("name").and_then(Value::as_str).ok_or(InvalidTool::Nameless)?;
        if name.is_empty() || name.chars().count() > NAME_CHARACTERS || clean_line(name) != name {
            return Err(InvalidTool::Name(name.chars().take(80).collect()));
        }
        let field = |key| raw.get(key).and_then(Value::as_str);
        let title = field("title").or_else(|| raw.get("annotations")?.get("title")?.as_str());
        Ok(Tool {
            name: name.to_owned(),
            title: title.map(|title| cut_text(&clean_line(title), SUMMARY_BYTES)),
            description: cut_text(
                &clean_text(field("description").unwrap_or_default()),
                DESCRIPTION_BYTES,
            ),
            parameters: read_parameters(raw),
            has_output_schema: raw.get("outputSchema").is_some_and(Value::is_object),
            hints: ToolHints::read(raw),
            raw: text,
            schemas: OnceLock::new(),
            raw_input_schema: OnceLock::new(),
            typescript: OnceLock::new(),
            definition_hash: OnceLock::new(),
            recorded_results: AtomicU32::new(0),
        })
    }

    /// Returns the cleaned input schema, which is always an object.
    pub(crate) fn input_schema(&self) -> &Value {
        &self.schemas().input
    }

    pub(crate) fn output_schema(&self) -> Option<&Value> {
        self.schemas().output.as_ref()
    }

    fn schemas(&self) -> &Schemas {
        self.schemas.get_or_init(|| {
            let raw = self.raw.to_value().unwrap_or_default();
            let schema = |key| raw.get(key).and_then(Value::as_object).map(clean_schema);
            let anything = || serde_json::json!({ "type": "object" });
            Schemas {
                input: schema("inputSchema").unwrap_or_else(anything),
                output: schema("outputSchema"),
            }
        })
    }

    /// Returns the first sentence of the description, on one line.
    pub(crate) fn summary(&self) -> String {
        let paragraph = self.description.trim().split("\n\n").next().unwrap_or_default();
        let line = clean_line(paragraph);
        let end = line.find(". ").map_or(line.len(), |end| end + 1);
        cut_text(line.get(..end).unwrap_or(&line), SUMMARY_BYTES)
    }

    /// Returns the tool's types. `observed`, the schema of past results, is used if the tool
    /// declares no output schema.
    pub(crate) fn types(&self, observed: Option<&Value>) -> Typings {
        let types = Typings::new(self.input_schema(), self.output_schema());
        match observed.filter(|_| !self.has_output_schema) {
            Some(observed) => types.with_observed(observed),
            None => types,
        }
    }

    /// Returns the signature on one line.
    pub(crate) fn signature(
        &self,
        voice: TypingsLanguage,
        server: &str,
        observed: Option<&Value>,
    ) -> String {
        let make = || self.types(observed).signature(voice, server, &self.name);
        match (voice, observed) {
            // Searches show this signature again and again.
            (TypingsLanguage::TypeScript, None) => self.typescript.get_or_init(make).clone(),
            _ => make(),
        }
    }

    /// Returns the input schema as the server wrote it. Arguments are checked against it.
    pub(crate) fn raw_input_schema(&self) -> &Value {
        let written = self.raw_input_schema.get_or_init(|| {
            let mut raw = self.raw.to_value().ok()?;
            let schema = raw.get_mut("inputSchema")?.take();
            // Usually equal to the cleaned schema, so it is stored only if different.
            (schema.is_object() && schema != *self.input_schema()).then_some(schema)
        });
        written.as_ref().unwrap_or_else(|| self.input_schema())
    }

    /// Returns true if the definition is large and not parsed yet.
    pub(crate) fn is_slow_to_parse(&self) -> bool {
        self.raw.text().len() > LONG_BYTES && self.raw_input_schema.get().is_none()
    }

    /// Returns a short hash that identifies this definition.
    pub(crate) fn definition_hash(&self) -> &str {
        self.definition_hash.get_or_init(|| {
            let digest = Sha256::digest(self.raw.text().as_bytes());
            digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
        })
    }
}

fn read_parameters(raw: &Value) -> Vec<(String, String)> {
    let properties = raw.get("inputSchema").and_then(|schema| schema.get("properties"));
    let properties = properties.and_then(Value::as_object).into_iter().flatten();
    properties
        .map(|(name, schema)| {
            let description = schema.get("description").and_then(Value::as_str);
            (
                clean_text(name),
                clean_text(&cut_text(description.unwrap_or_default(), PARAMETER_BYTES)),
            )
        })
        .collect()
}

/// Cleans every text in a schema, names and enum values included. If two names become equal, the
/// first one stays.
fn clean_schema(schema: &Map<String, Value>) -> Value {
    let mut fields = Map::new();
    for (key, value) in schema {
        let key = clean_text(key);
        fields.entry(key).or_insert_with(|| clean_value(value));
    }
    Value::Object(fields)
}

fn clean_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut_text(&clean_text(text), DESCRIPTION_BYTES)),
        Value::Object(inner) => clean_schema(inner),
        Value::Array(list) => Value::Array(list.iter().map(clean_value).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests;
