//! THREAT[TXT-1]: a schema, which an upstream wrote and which may be hostile, as a [`Shape`].
//! Depth, steps and names are bounded, references are followed within the schema only, and each
//! is read once.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{
    merge::{both, union},
    model::{Definition, Field, Object, Shape, Type},
    names::Names,
    notes::notes,
    refs::References,
};
use crate::clean::clean;

const DEPTH: usize = 16;
const STEPS: usize = 5_000;
const FIELDS: usize = 200;
const CHOICES: usize = 30;
const DEFINITIONS: usize = 100;
const NAME_BYTES: usize = 128;
const LITERAL_BYTES: usize = 120;

type Schema = Map<String, Value>;

/// `name`: what a reference to the whole schema is called.
pub(super) fn read(schema: &Value, name: &str, names: &mut Names) -> Shape {
    let mut reader = Reader {
        references: References::new(schema),
        left: STEPS,
        known: HashMap::new(),
        waiting: Vec::new(),
        inlined: Vec::new(),
        is_cut: false,
    };
    let root = reader.read(schema, DEPTH);
    let mut definitions: Vec<Definition> = Vec::new();
    // Reading one can find more.
    while let Some(to) = reader.waiting.get(definitions.len()).copied() {
        let target = reader.references.find(to).unwrap_or(&Value::Bool(true));
        let wanted = to.rsplit('/').next().filter(|last| *last != "#").unwrap_or(name);
        let r#type = reader.read(target, DEPTH);
        let name = names.make(wanted);
        definitions.push(Definition { name, r#type, uses: 0, is_recursive: false });
    }
    super::recursion::settle(Shape { root, definitions, is_cut: reader.is_cut })
}

struct Reader<'a> {
    references: References<'a>,
    /// How many more schemas are read.
    left: usize,
    /// The place of each reference in the list of definitions.
    known: HashMap<&'a str, usize>,
    /// The references in that order.
    waiting: Vec<&'a str>,
    /// References being read in place: one that leads back ends the walk.
    inlined: Vec<&'a str>,
    is_cut: bool,
}

impl<'a> Reader<'a> {
    fn read(&mut self, schema: &'a Value, depth: usize) -> Type {
        match schema {
            Value::Bool(false) => Type::Never,
            Value::Object(schema) => {
                let (Some(left), Some(depth)) = (self.left.checked_sub(1), depth.checked_sub(1))
                else {
                    self.is_cut = true;
                    return Type::Unknown;
                };
                self.left = left;
                let r#type = self.read_schema(schema, depth);
                match schema.get("nullable") {
                    Some(Value::Bool(true)) => union(vec![r#type, Type::Null]),
                    _ => r#type,
                }
            }
            _ => Type::Unknown,
        }
    }

    fn read_schema(&mut self, schema: &'a Schema, depth: usize) -> Type {
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return self.read_enum(values);
        }
        let mut parts = Vec::new();
        let has_fields = ["properties", "allOf"].iter().any(|key| schema.contains_key(*key));
        if let Some(to) = References::of(schema) {
            parts.push(if has_fields { self.read_inline(to, depth) } else { self.refer(to) });
        }
        parts.extend(self.read_plain(schema, depth));
        if let Some(Value::Array(all)) = schema.get("allOf") {
            for part in self.first(all, CHOICES) {
                let to = part.as_object().and_then(References::of);
                parts.push(match to {
                    // In place, so that its fields become ours; alone it keeps its name.
                    Some(to) if all.len() > 1 || !parts.is_empty() => self.read_inline(to, depth),
                    _ => self.read(part, depth),
                });
            }
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = schema.get(key)
                && !choices.is_empty()
            {
                let choices = self.first(choices, CHOICES);
                let read = choices.iter().map(|choice| self.read(choice, depth)).collect();
                parts.push(union(read));
            }
        }
        both(parts)
    }

    /// What `type` and its company say.
    fn read_plain(&mut self, schema: &'a Schema, depth: usize) -> Option<Type> {
        let has = |keys: &[&str]| keys.iter().any(|key| schema.contains_key(*key));
        match schema.get("type") {
            Some(Value::String(name)) => Some(self.read_type(name, schema, depth)),
            Some(Value::Array(names)) => {
                let names = names.iter().take(CHOICES).filter_map(Value::as_str);
                Some(union(names.map(|name| self.read_type(name, schema, depth)).collect()))
            }
            _ if has(&["properties", "required", "patternProperties"]) => {
                Some(self.read_object(schema, depth))
            }
            _ if schema.get("additionalProperties").is_some_and(Value::is_object) => {
                Some(self.read_object(schema, depth))
            }
            _ if has(&["items", "prefixItems"]) => Some(self.read_array(schema, depth)),
            _ => None,
        }
    }

    fn read_type(&mut self, name: &str, schema: &'a Schema, depth: usize) -> Type {
        match name {
            "string" => Type::String,
            "boolean" => Type::Boolean,
            "null" => Type::Null,
            "number" => Type::Number,
            "integer" => Type::Integer,
            "array" => self.read_array(schema, depth),
            "object" => self.read_object(schema, depth),
            _ => Type::Unknown,
        }
    }

    fn read_array(&mut self, schema: &'a Schema, depth: usize) -> Type {
        let (first, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (Some(Value::Array(first)), rest) => (first, rest),
            // As drafts before 2020-12 write it.
            (_, Some(Value::Array(first))) => (first, schema.get("additionalItems")),
            (_, Some(items)) => return Type::Array(Box::new(self.read(items, depth))),
            (_, None) => return Type::Array(Box::new(Type::Unknown)),
        };
        let first = self.first(first, CHOICES);
        let items = first.iter().map(|item| self.read(item, depth)).collect();
        let rest = rest.filter(|rest| rest.is_object()).map(|rest| self.read(rest, depth));
        Type::Tuple { items, rest: rest.map(Box::new) }
    }

    fn read_object(&mut self, schema: &'a Schema, depth: usize) -> Type {
        let mut fields = Vec::new();
        let required = schema.get("required").and_then(Value::as_array);
        let required: Vec<&str> =
            required.into_iter().flatten().take(FIELDS).filter_map(Value::as_str).collect();
        let is_required: HashSet<&str> = required.iter().copied().collect();
        let mut names: HashSet<String> = HashSet::new();
        for (name, value) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            if let Some(shown) = self.field_name(name, fields.len())
                && names.insert(shown.clone())
            {
                let r#type = self.read(value, depth);
                let notes = notes(self.texts(value));
                let is_required = is_required.contains(name.as_str());
                fields.push(Field { name: shown, r#type, is_required, notes });
            }
        }
        let others = self.read_others(schema, depth);
        // A name that is required and nowhere described is still required.
        for name in required.into_iter().filter(|_| others != Some(Type::Never)) {
            if let Some(shown) = self.field_name(name, fields.len())
                && names.insert(shown.clone())
            {
                let (r#type, notes) = (Type::Unknown, super::model::Notes::default());
                fields.push(Field { name: shown, r#type, is_required: true, notes });
            }
        }
        match (fields.is_empty(), others) {
            (true, Some(others)) => Type::Map(Box::new(others)),
            (true, None) => Type::Map(Box::new(Type::Unknown)),
            (false, others) => {
                let has_others = others.is_some_and(|others| others != Type::Never);
                Type::Object(Object { fields, has_others })
            }
        }
    }

    /// What fields that are not named can be; `None` when nothing is said.
    fn read_others(&mut self, schema: &'a Schema, depth: usize) -> Option<Type> {
        let mut others = Vec::new();
        match schema.get("additionalProperties") {
            Some(value @ Value::Object(inner)) if !inner.is_empty() => {
                others.push(self.read(value, depth));
            }
            Some(Value::Bool(false)) => others.push(Type::Never),
            _ => {}
        }
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        for value in patterns.into_iter().flat_map(Map::values).take(CHOICES) {
            others.push(self.read(value, depth));
        }
        (!others.is_empty()).then(|| union(others))
    }

    fn read_enum(&mut self, values: &[Value]) -> Type {
        let mut choices: Vec<Type> = values.iter().take(CHOICES).map(literal).collect();
        // The others are known by their kind only.
        let kinds = values.iter().skip(CHOICES).take(STEPS).map(kind);
        for kind in kinds {
            if !choices.contains(&kind) {
                choices.push(kind);
            }
        }
        union(choices)
    }

    /// The definition's place, to be read later.
    fn refer(&mut self, to: &'a str) -> Type {
        if let Some(at) = self.known.get(to) {
            return Type::Named(*at);
        }
        if self.references.find(to).is_none() {
            return Type::Unknown;
        }
        if self.waiting.len() >= DEFINITIONS {
            self.is_cut = true;
            return Type::Unknown;
        }
        self.known.insert(to, self.waiting.len());
        self.waiting.push(to);
        Type::Named(self.waiting.len() - 1)
    }

    fn read_inline(&mut self, to: &'a str, depth: usize) -> Type {
        let Some(target) = self.references.find(to) else { return Type::Unknown };
        if self.inlined.contains(&to) {
            return Type::Unknown;
        }
        self.inlined.push(to);
        let r#type = self.read(target, depth);
        self.inlined.pop();
        r#type
    }

    /// The schema, and where it only refers to another, that one.
    fn texts(&self, schema: &'a Value) -> impl Iterator<Item = &'a Schema> + use<'a> {
        let own = schema.as_object();
        let other = own.and_then(References::of).and_then(|to| self.references.find(to));
        own.into_iter().chain(other.and_then(Value::as_object))
    }

    fn field_name(&mut self, name: &str, count: usize) -> Option<String> {
        if count < FIELDS && name.len() <= NAME_BYTES {
            return Some(clean(name));
        }
        self.is_cut = true;
        None
    }

    fn first(&mut self, list: &'a [Value], most: usize) -> &'a [Value] {
        self.is_cut |= list.len() > most;
        list.get(..most).unwrap_or(list)
    }
}

fn literal(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::String(text) if text.len() <= LITERAL_BYTES => {
            Type::Literal(Value::String(clean(text)))
        }
        Value::Bool(_) | Value::Number(_) => Type::Literal(value.clone()),
        other => kind(other),
    }
}

fn kind(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Boolean,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::Array(_) => Type::Array(Box::new(Type::Unknown)),
        Value::Object(_) => Type::Map(Box::new(Type::Unknown)),
    }
}
