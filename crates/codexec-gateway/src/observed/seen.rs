//! THREAT[TXT-3]: the types that were seen at one place, and nothing of the values. Names that look
//! like data are values too.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

const DEPTH: usize = 6;
/// Fields of one object; one with more is a map, whose names are data.
const FIELDS: usize = 40;
/// Elements of one list that are looked at.
const ELEMENTS: usize = 16;
/// Values of one result that are looked at.
const VALUES: usize = 400;
/// Places that are kept of one tool.
const PLACES: usize = 400;
const NAME_BYTES: usize = 48;
/// A name with so many digits is somebody's number.
const NAME_DIGITS: usize = 6;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Seen {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    kinds: BTreeSet<Kind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<Seen>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<Object>,
    /// The values of an object whose names are data.
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<Box<Seen>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    String,
    Integer,
    Number,
    Boolean,
    Null,
    /// Too deep or too much to be told.
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Object {
    /// How often there was one.
    times: u32,
    fields: BTreeMap<String, Field>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Field {
    /// How often the object had it.
    times: u32,
    seen: Seen,
}

impl Seen {
    pub(super) fn look(&mut self, value: &Value) {
        if self.places() < PLACES {
            self.add(value, DEPTH, &mut { VALUES });
        }
    }

    fn add(&mut self, value: &Value, depth: usize, left: &mut usize) {
        let (Some(fewer), Some(inner)) = (left.checked_sub(1), depth.checked_sub(1)) else {
            self.kinds.insert(Kind::Unknown);
            return;
        };
        *left = fewer;
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(_) => Kind::Boolean,
            Value::Number(number) if number.is_f64() => Kind::Number,
            Value::Number(_) => Kind::Integer,
            Value::String(_) => Kind::String,
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
        let is_map = fields.len() > FIELDS || !fields.keys().all(|name| is_field(name));
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
        // Its names are data: they are forgotten, and the values become one.
        let map = self.map.get_or_insert_default();
        for field in self.object.take().into_iter().flat_map(|object| object.fields.into_values()) {
            map.absorb(field.seen);
        }
        if is_map || !fields.is_empty() {
            for value in fields.values().take(ELEMENTS) {
                map.add(value, depth, left);
            }
        }
    }

    /// Takes over what was seen elsewhere.
    fn absorb(&mut self, other: Seen) {
        self.kinds.extend(other.kinds);
        if let Some(items) = other.items {
            self.items.get_or_insert_default().absorb(*items);
        }
        if let Some(map) = other.map {
            self.map.get_or_insert_default().absorb(*map);
        }
        if let Some(object) = other.object {
            let own = self.object.get_or_insert_default();
            own.times = own.times.saturating_add(object.times);
            for (name, field) in object.fields {
                let known = own.fields.entry(name).or_default();
                known.times = known.times.saturating_add(field.times);
                known.seen.absorb(field.seen);
            }
        }
    }

    fn places(&self) -> usize {
        let inner = self.items.iter().chain(&self.map).map(|inner| inner.places());
        let fields = self.object.iter().flat_map(|object| object.fields.values());
        1 + inner.sum::<usize>() + fields.map(|field| field.seen.places()).sum::<usize>()
    }

    /// Whether a file may say this.
    pub(super) fn is_reasonable(&self) -> bool {
        self.places() <= PLACES * 2 && self.has_only_fields()
    }

    fn has_only_fields(&self) -> bool {
        self.items.iter().chain(&self.map).all(|inner| inner.has_only_fields())
            && self
                .object
                .iter()
                .flat_map(|object| &object.fields)
                .all(|(name, field)| is_field(name) && field.seen.has_only_fields())
    }

    pub(super) fn schema(&self) -> Value {
        if self.kinds.contains(&Kind::Unknown) {
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
            choices.push(match **items == Seen::default() {
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

impl Object {
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

/// Whether a name looks like a field of a program and not like somebody's data.
fn is_field(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || "_$@".contains(c);
    let is_next = |c: char| c.is_ascii_alphanumeric() || "_-$".contains(c);
    name.len() <= NAME_BYTES
        && name.starts_with(is_first)
        && name.chars().skip(1).all(is_next)
        && name.bytes().filter(u8::is_ascii_digit).count() < NAME_DIGITS
}
