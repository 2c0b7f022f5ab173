//! Parses the arguments of clients field by field, so that every error names the field and what is
//! allowed.

use serde_json::{Map, Value};

/// The arguments of one call. Fields that have not been read when [`Fields::finish`] is called are
/// unknown.
pub struct Fields {
    values: Map<String, Value>,
    known: Vec<&'static str>,
}

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum FieldError {
    #[error("{field}: {problem}; {allowed}")]
    Invalid { field: String, problem: String, allowed: String },
    #[error("{}: unknown; {}", .unknown.join(", "), list_allowed_fields(.known))]
    Unknown { unknown: Vec<String>, known: Vec<&'static str> },
}

impl Fields {
    pub fn new(values: Map<String, Value>) -> Fields {
        Fields { values, known: Vec::new() }
    }

    pub fn text(&mut self, field: &'static str) -> Result<Option<String>, FieldError> {
        match self.take(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(invalid_field(field, &other, "it must be a string")),
        }
    }

    pub fn required_text(&mut self, field: &'static str) -> Result<String, FieldError> {
        self.text(field)?.ok_or_else(|| FieldError::Invalid {
            field: field.to_owned(),
            problem: "it is missing".to_owned(),
            allowed: "it must be a string".to_owned(),
        })
    }

    /// Reads one of the words, and returns the value that belongs to it.
    pub fn choice<T: Copy>(
        &mut self,
        field: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, FieldError> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        let found = choices.iter().find(|(word, _)| *word == text);
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let allowed = format!("it must be one of {}", words.join(", "));
        found
            .map(|(_, value)| Some(*value))
            .ok_or_else(|| invalid_field(field, &Value::String(text), &allowed))
    }

    pub fn number(
        &mut self,
        field: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, FieldError> {
        let allowed =
            format!("it must be a whole number from {} to {}", range.start(), range.end());
        match self.take(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match as_whole_number(&value).filter(|number| range.contains(number)) {
                Some(number) => Ok(Some(number)),
                None => Err(invalid_field(field, &value, &allowed)),
            },
        }
    }

    pub fn boolean(&mut self, field: &'static str) -> Result<Option<bool>, FieldError> {
        match self.take(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(boolean)) => Ok(Some(boolean)),
            Some(other) => Err(invalid_field(field, &other, "it must be true or false")),
        }
    }

    pub fn texts(&mut self, field: &'static str) -> Result<Option<Vec<String>>, FieldError> {
        let allowed = "it must be an array of strings";
        match self.take(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text),
                    other => Err(invalid_field(field, &other, allowed)),
                })
                .collect::<Result<_, _>>()
                .map(Some),
            Some(other) => Err(invalid_field(field, &other, allowed)),
        }
    }

    pub fn take(&mut self, field: &'static str) -> Option<Value> {
        self.known.push(field);
        self.values.shift_remove(field)
    }

    pub fn finish(self) -> Result<(), FieldError> {
        if self.values.is_empty() {
            return Ok(());
        }
        let unknown = self.values.keys().take(5).map(|key| shorten(key)).collect();
        Err(FieldError::Unknown { unknown, known: self.known })
    }
}

fn list_allowed_fields(known: &[&str]) -> String {
    match known {
        [] => "no fields are allowed".to_owned(),
        known => format!("allowed fields: {}", known.join(", ")),
    }
}

/// Accepts a float without a fraction: JavaScript clients have no other numbers.
fn as_whole_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let float = value.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked first"
        )]
        (float.fract() == 0.0 && (0.0..9e15).contains(&float)).then_some(float as u64)
    })
}

fn invalid_field(field: &str, value: &Value, allowed: &str) -> FieldError {
    FieldError::Invalid {
        field: field.to_owned(),
        problem: format!("{} is not allowed", shorten(&value.to_string())),
        allowed: allowed.to_owned(),
    }
}

fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests;
