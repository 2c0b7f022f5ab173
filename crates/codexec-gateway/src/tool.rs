//! One tool, as a server described it and as we use it.

use std::sync::{OnceLock, atomic::AtomicU32};

use codexec_types::Json;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::{
    arguments::Arguments,
    clean::{clean, clean_line, cut},
    types::{Types, Voice},
};

const NAME_CHARACTERS: usize = 128;
const DESCRIPTION_BYTES: usize = 16 << 10;
const SUMMARY_BYTES: usize = 200;

#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    /// Cleaned and cut: safe to show.
    pub(crate) description: String,
    /// Always an object. Cleaned, as the output's is.
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
    /// The definition as it came, every field of it: what arguments are checked against and
    /// what is hashed. It is never shown.
    pub(crate) raw: Json,
    arguments: OnceLock<Arguments>,
    typescript: OnceLock<String>,
    definition: OnceLock<String>,
    /// Results whose shape was looked at.
    pub(crate) looked_at: AtomicU32,
}

/// Why a tool is left out of the catalogue.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum BadTool {
    #[error("a tool without a name was left out")]
    Nameless,
    #[error(
        "tool {0:?} was left out: a name has 1 to {NAME_CHARACTERS} characters, all of them visible"
    )]
    Name(String),
}

impl Tool {
    /// Drops or repairs the fields that are wrong; only a bad name costs the tool.
    pub(crate) fn read(raw: &Value) -> Result<Tool, BadTool> {
        let name = raw.get("name").and_then(Value::as_str).ok_or(BadTool::Nameless)?;
        if name.is_empty() || name.chars().count() > NAME_CHARACTERS || clean_line(name) != name {
            return Err(BadTool::Name(name.chars().take(80).collect()));
        }
        let text = |key| raw.get(key).and_then(Value::as_str);
        let title = text("title").or_else(|| raw.get("annotations")?.get("title")?.as_str());
        let input_schema = match raw.get("inputSchema") {
            Some(Value::Object(schema)) => cleaned(schema),
            _ => serde_json::json!({ "type": "object" }),
        };
        let output_schema = match raw.get("outputSchema") {
            Some(Value::Object(schema)) => Some(cleaned(schema)),
            _ => None,
        };
        Ok(Tool {
            name: name.to_owned(),
            title: title.map(|title| cut(&clean_line(title), SUMMARY_BYTES)),
            description: cut(&clean(text("description").unwrap_or_default()), DESCRIPTION_BYTES),
            input_schema,
            output_schema,
            raw: Json::from_value(raw),
            arguments: OnceLock::new(),
            typescript: OnceLock::new(),
            definition: OnceLock::new(),
            looked_at: AtomicU32::new(0),
        })
    }

    /// The first sentence, on one line.
    pub(crate) fn summary(&self) -> String {
        let paragraph = self.description.trim().split("\n\n").next().unwrap_or_default();
        let line = clean_line(paragraph);
        let end = line.find(". ").map_or(line.len(), |end| end + 1);
        cut(line.get(..end).unwrap_or(&line), SUMMARY_BYTES)
    }

    /// Its types; `observed` is the schema of what it gave, used where it promises nothing.
    pub(crate) fn types(&self, observed: Option<&Value>) -> Types {
        let types = Types::new(&self.input_schema, self.output_schema.as_ref());
        match observed.filter(|_| self.output_schema.is_none()) {
            Some(observed) => types.with_observed(observed),
            None => types,
        }
    }

    /// On one line.
    pub(crate) fn signature(&self, voice: Voice, server: &str, observed: Option<&Value>) -> String {
        let make = || self.types(observed).line(voice, server, &self.name);
        match (voice, observed) {
            // What searches show, over and over.
            (Voice::TypeScript, None) => self.typescript.get_or_init(make).clone(),
            _ => make(),
        }
    }

    /// What checks its arguments; made at the first call, from the schema as the server wrote it.
    pub(crate) fn arguments(&self) -> &Arguments {
        self.arguments.get_or_init(|| {
            let raw = self.raw.to_value().ok();
            let schema = raw.as_ref().and_then(|raw| raw.get("inputSchema"));
            Arguments::new(schema.filter(|schema| schema.is_object()).unwrap_or(&self.input_schema))
        })
    }

    /// Tells one definition from the next.
    pub(crate) fn definition(&self) -> &str {
        self.definition.get_or_init(|| {
            let digest = Sha256::digest(self.raw.text().as_bytes());
            digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
        })
    }

    /// The names and descriptions of its parameters.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        let properties = self.input_schema.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| {
            let description = schema.get("description").and_then(Value::as_str);
            (name.as_str(), description.unwrap_or_default())
        })
    }
}

/// The schema with every text in it cleaned, names and choices included. Of two names that look
/// the same, the first stays.
fn cleaned(schema: &Map<String, Value>) -> Value {
    let mut fields = Map::new();
    for (key, value) in schema {
        let key = clean(key);
        fields.entry(key).or_insert_with(|| cleaned_value(value));
    }
    Value::Object(fields)
}

fn cleaned_value(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&clean(text), DESCRIPTION_BYTES)),
        Value::Object(inner) => cleaned(inner),
        Value::Array(list) => Value::Array(list.iter().map(cleaned_value).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests;
