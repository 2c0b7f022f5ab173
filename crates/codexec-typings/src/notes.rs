//! Reads descriptions, limits and defaults of a schema as short notes.

use codexec_types::{clean_line, cut_text};
use serde_json::{Map, Value};

use super::model::Notes;

const TEXT_BYTES: usize = 300;
const FACT_BYTES: usize = 48;
/// The largest safe integer, which serializers write for "no limit".
const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Reads each note from the first schema that has it.
pub(super) fn read_notes<'a>(schemas: impl Iterator<Item = &'a Map<String, Value>>) -> Notes {
    let mut notes = Notes::default();
    for schema in schemas {
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        if notes.text.is_empty() {
            notes.text = cut_text(&clean_line(text), TEXT_BYTES);
        }
        if notes.facts.is_empty() {
            notes.facts = read_facts(schema);
        }
        if notes.default.is_none() {
            notes.default = schema.get("default").filter(|value| is_short(value)).cloned();
        }
    }
    notes
}

fn read_facts(schema: &Map<String, Value>) -> Vec<String> {
    let mut facts = Vec::new();
    let number = |key: &str| {
        let value = schema.get(key)?;
        let is_limit = value.as_f64().is_some_and(|number| number.abs() < SAFE_INTEGER);
        is_limit.then(|| value.to_string())
    };
    let text = |key: &str| {
        let text = clean_line(schema.get(key)?.as_str()?);
        (!text.is_empty() && text.len() <= FACT_BYTES).then_some(text)
    };
    for (least, most, what) in [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ] {
        // A minimum of 0 characters or items says nothing.
        let least = number(least).filter(|least| what.is_empty() || least != "0");
        match (least, number(most)) {
            (Some(least), Some(most)) => facts.push(format!("{least} to {most}{what}")),
            (Some(least), None) => facts.push(format!("at least {least}{what}")),
            (None, Some(most)) => facts.push(format!("at most {most}{what}")),
            (None, None) => {}
        }
    }
    facts.extend(number("exclusiveMinimum").map(|least| format!("more than {least}")));
    facts.extend(number("exclusiveMaximum").map(|most| format!("less than {most}")));
    facts.extend(number("multipleOf").map(|step| format!("multiple of {step}")));
    facts.extend(text("format"));
    facts.extend(text("pattern").map(|pattern| format!("pattern /{pattern}/")));
    if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
        facts.push("unique items".to_owned());
    }
    if schema.get("deprecated") == Some(&Value::Bool(true)) {
        facts.push("deprecated".to_owned());
    }
    let example = schema.get("examples").and_then(|examples| examples.get(0));
    let example =
        example.filter(|example| is_short(example) && schema.get("description").is_none());
    facts
        .extend(example.map(|example| format!("for example {}", clean_line(&example.to_string()))));
    facts
}

/// Returns true for a value that fits a comment; a null default is not worth one.
fn is_short(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.len() <= FACT_BYTES,
        Value::Array(list) => list.len() <= 4 && list.iter().all(is_short_scalar),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn is_short_scalar(value: &Value) -> bool {
    match value {
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.len() <= FACT_BYTES / 4,
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

impl Notes {
    /// Returns the notes as one comment; `bytes` limits its text.
    pub(super) fn comment(&self, bytes: usize, with_default: bool) -> String {
        if bytes == 0 {
            return String::new();
        }
        let mut facts = self.facts.clone();
        if let Some(default) = self.default.as_ref().filter(|_| with_default) {
            facts.push(format!("default {}", clean_line(&default.to_string())));
        }
        let text = cut_text(&self.text, bytes);
        let facts = facts.join(", ");
        match (text.is_empty(), facts.is_empty()) {
            (true, _) => facts,
            (false, true) => text,
            (false, false) => {
                let end = if text.ends_with(['.', '…', '!', '?']) { "" } else { ";" };
                format!("{text}{end} {facts}")
            }
        }
    }
}
