//! THREAT[TXT-3]: the observed types of one value, without the value itself. Field names that look
//! like data count as values too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const DEPTH: usize = 6;
/// Maximum number of fields of one object; an object with more is a map, whose keys are data.
const FIELDS: usize = 40;
/// How many elements of one list are observed.
const ELEMENTS: usize = 16;
/// How many values of one result are observed.
const VALUES: usize = 400;
/// Maximum number of nodes in the shape of one tool's results.
const NODES: usize = 400;
const NAME_BYTES: usize = 48;
/// A name with this many digits is data, such as an account number.
const NAME_DIGITS: usize = 6;

/// The types that were seen in the results of one tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutputShape {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    kinds: BTreeSet<ScalarKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<OutputShape>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<ObjectShape>,
    /// The values of an object whose keys are data.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<Box<OutputShape>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScalarKind {
    String,
    Integer,
    Number,
    Boolean,
    Null,
    /// Nested too deep, or beyond the limit of values.
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct ObjectShape {
    /// How often the object was observed.
    times: u32,
    fields: BTreeMap<String, FieldShape>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct FieldShape {
    /// How often the object had the field.
    times: u32,
    seen: OutputShape,
}

impl OutputShape {
    /// Adds the types of one more result.
    pub fn observe(&mut self, value: &Value) {
        if self.count_nodes() < NODES {
            self.add(value, DEPTH, &mut { VALUES });
        }
    }

    fn add(&mut self, value: &Value, depth: usize, left: &mut usize) {
        let (Some(fewer), Some(inner)) = (left.checked_sub(1), depth.checked_sub(1)) else {
            self.kinds.insert(ScalarKind::Unknown);
            return;
        };
        *left = fewer;
        let kind = match value {
            Value::Null => ScalarKind::Null,
            Value::Bool(_) => ScalarKind::Boolean,
            Value::Number(number) if number.is_f64() => ScalarKind::Number,
            Value::Number(_) => ScalarKind::Integer,
            Value::String(_) => ScalarKind::String,
            Value::Array(list) => {
                let items = self.items.get_or_insert_default();
                for item in list.iter().take(ELEMENTS) {
                    items.add(item, inner, left);
                }
                return;
            }
            Value::Object(fields) => return self.add_object(fields, inner, left),
        };
        self.kinds.insert(kind);
    }

    fn add_object(&mut self, fields: &Map<String, Value>, depth: usize, left: &mut usize) {
        let is_map = fields.len() > FIELDS || !fields.keys().all(|name| is_field_name(name));
        if self.map.is_none() && !is_map {
            let object = self.object.get_or_insert_default();
            object.times = object.times.saturating_add(1);
            for (name, value) in fields {
                let field = object.fields.entry(name.clone()).or_default();
                field.times = field.times.saturating_add(1);
                field.seen.add(value, depth, left);
            }
            if object.fields.len() <= FIELDS {
                return;
            }
        }
        // The keys are data: they are dropped, and the shapes of the values are merged.
        let map = self.map.get_or_insert_default();
        for field in self.object.take().into_iter().flat_map(|object| object.fields.into_values()) {
            map.merge(field.seen);
        }
        if is_map || !fields.is_empty() {
            for value in fields.values().take(ELEMENTS) {
                map.add(value, depth, left);
            }
        }
    }

    /// Merges another shape into this one.
    fn merge(&mut self, other: OutputShape) {
        self.kinds.extend(other.kinds);
        if let Some(items) = other.items {
            self.items.get_or_insert_default().merge(*items);
        }
        if let Some(map) = other.map {
            self.map.get_or_insert_default().merge(*map);
        }
        if let Some(object) = other.object {
            let own = self.object.get_or_insert_default();
            own.times = own.times.saturating_add(object.times);
            for (name, field) in object.fields {
                let known = own.fields.entry(name).or_default();
                known.times = known.times.saturating_add(field.times);
                known.seen.merge(field.seen);
            }
        }
    }

    fn count_nodes(&self) -> usize {
        let inner = self.items.iter().chain(&self.map).map(|inner| inner.count_nodes());
        let fields = self.object.iter().flat_map(|object| object.fields.values());
        1 + inner.sum::<usize>() + fields.map(|field| field.seen.count_nodes()).sum::<usize>()
    }

    /// Returns true if a shape from a file is within the limits.
    pub fn is_valid(&self) -> bool {
        self.count_nodes() <= NODES * 2 && self.has_only_field_names()
    }

    fn has_only_field_names(&self) -> bool {
        self.items.iter().chain(&self.map).all(|inner| inner.has_only_field_names())
            && self
                .object
                .iter()
                .flat_map(|object| &object.fields)
                .all(|(name, field)| is_field_name(name) && field.seen.has_only_field_names())
    }

    /// Returns the shape as a JSON schema.
    pub fn schema(&self) -> Value {
        if self.kinds.contains(&ScalarKind::Unknown) {
            return json!({});
        }
        let mut choices: Vec<Value> = Vec::new();
        if let Some(object) = &self.object {
            choices.push(object.schema());
        }
        if let Some(map) = &self.map {
            choices.push(json!({"type": "object", "additionalProperties": map.schema()}));
        }
        if let Some(items) = &self.items {
            choices.push(match **items == OutputShape::default() {
                true => json!({"type": "array"}),
                false => json!({"type": "array", "items": items.schema()}),
            });
        }
        choices.extend(self.kinds.iter().map(|kind| json!({"type": kind})));
        match choices.len() {
            0 => json!({}),
            1 => choices.pop().unwrap_or_default(),
            _ => json!({"anyOf": choices}),
        }
    }
}

impl ObjectShape {
    fn schema(&self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, field) in &self.fields {
            properties.insert(name.clone(), field.seen.schema());
            if field.times >= self.times {
                required.push(Value::from(name.as_str()));
            }
        }
        json!({"type": "object", "properties": properties, "required": required})
    }
}

/// Returns true if a name looks like a field name, not like data.
fn is_field_name(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || "_$@".contains(c);
    let is_next = |c: char| c.is_ascii_alphanumeric() || "_-$".contains(c);
    name.len() <= NAME_BYTES
        && name.starts_with(is_first)
        && name.chars().skip(1).all(is_next)
        && name.bytes().filter(u8::is_ascii_digit).count() < NAME_DIGITS
}

#[cfg(test)]
mod tests;
