//! One tool, as a server described it and as we use it.

use std::sync::OnceLock;

use codexec_types::Json;
use serde_json::{Map, Value};

use crate::{
    arguments::Arguments,
    clean::{clean, clean_line, cut},
    hints::Hints,
    signature::signature,
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
    /// Always an object.
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Option<Value>,
    pub(crate) hints: Hints,
    /// The definition as it came, every field of it.
    pub(crate) raw: Json,
    arguments: OnceLock<Arguments>,
    signature: OnceLock<String>,
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
            hints: Hints::read(raw),
            raw: Json::from_value(raw),
            arguments: OnceLock::new(),
            signature: OnceLock::new(),
        })
    }

    /// The first sentence, on one line.
    pub(crate) fn summary(&self) -> String {
        let paragraph = self.description.trim().split("\n\n").next().unwrap_or_default();
        let line = clean_line(paragraph);
        let end = line.find(". ").map_or(line.len(), |end| end + 1);
        cut(line.get(..end).unwrap_or(&line), SUMMARY_BYTES)
    }

    /// In TypeScript, on one line.
    pub(crate) fn signature(&self) -> &str {
        self.signature
            .get_or_init(|| signature(&self.name, &self.input_schema, self.output_schema.as_ref()))
    }

    /// What checks its arguments; made at the first call.
    pub(crate) fn arguments(&self) -> &Arguments {
        self.arguments.get_or_init(|| Arguments::new(&self.input_schema))
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

/// The schema with its texts cleaned. What is matched against (names, enums) stays as it is.
fn cleaned(schema: &Map<String, Value>) -> Value {
    let fields = schema.iter().map(|(key, value)| {
        let value = match value {
            Value::String(text) if key == "description" || key == "title" => {
                Value::String(cut(&clean(text), DESCRIPTION_BYTES))
            }
            Value::Object(inner) => cleaned(inner),
            Value::Array(list) => Value::Array(list.iter().map(cleaned_item).collect()),
            other => other.clone(),
        };
        (key.clone(), value)
    });
    Value::Object(fields.collect())
}

fn cleaned_item(value: &Value) -> Value {
    match value {
        Value::Object(inner) => cleaned(inner),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
