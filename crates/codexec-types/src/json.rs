use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A well-formed JSON text. Results pass from an upstream to a guest and from a guest to a client
/// without being parsed on the way.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    pub fn null() -> Json {
        Json(RawValue::NULL.to_owned())
    }

    /// Checks that `text` is one JSON value and keeps it unchanged.
    pub fn parse(text: String) -> Result<Json, serde_json::Error> {
        RawValue::from_string(text).map(Json)
    }

    pub fn from_value(value: &serde_json::Value) -> Json {
        // A `Value` always has a JSON text: its maps have string keys and its numbers are finite.
        serde_json::value::to_raw_value(value).map_or_else(|_| Json::null(), Json)
    }

    /// Fails on values nested deeper than serde_json's 128 levels.
    pub fn to_value(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
