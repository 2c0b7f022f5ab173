use codexec_types::Language;
use serde_json::{Map, Value, json};

use crate::{Argument, ArgumentListing, ArgumentNeed, ArgumentType, FunctionSpec};

impl FunctionSpec {
    /// Returns the JSON Schema of the arguments that agents are told about.
    pub fn input_schema(&self) -> Value {
        let listed = || self.arguments().filter(|one| one.listing != ArgumentListing::Hidden);
        let properties: Map<String, Value> =
            listed().map(|one| (one.name.to_owned(), one.schema())).collect();
        let required: Vec<&str> =
            listed().filter(|one| one.need != ArgumentNeed::Optional).map(|one| one.name).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if let (Some(fields), false) = (schema.as_object_mut(), required.is_empty()) {
            fields.insert("required".to_owned(), json!(required));
        }
        schema
    }
}

impl Argument {
    fn schema(&self) -> Value {
        let mut schema = self.value_schema();
        if let (Some(fields), ArgumentListing::Described) = (schema.as_object_mut(), self.listing) {
            fields.insert("description".to_owned(), self.description.into());
        }
        schema
    }

    /// Returns the JSON Schema of the argument's values, without its description.
    pub fn value_schema(&self) -> Value {
        match self.kind {
            ArgumentType::Text => json!({"type": "string"}),
            ArgumentType::Texts => json!({"type": "array", "items": {"type": "string"}}),
            ArgumentType::Integer => json!({"type": "integer"}),
            ArgumentType::Boolean => json!({"type": "boolean"}),
            ArgumentType::Object => json!({"type": "object"}),
            ArgumentType::Json => json!({}),
            ArgumentType::Language => json!({"enum": Language::ALL.map(Language::name)}),
            ArgumentType::Choice(words) => json!({"enum": words}),
        }
    }
}
