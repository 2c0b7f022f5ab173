//! THREAT[TXT-1]: reads an upstream's schema, which may be hostile, as a [`SchemaShape`]. Depth,
//! steps and names are bounded; references are followed only within the schema, each once.

use std::collections::{HashMap, HashSet};

use codexec_types::clean_text;
use serde_json::{Map, Value};

use super::{
    merge::{intersection, union},
    model::{Field, ObjectType, SchemaShape, Type, TypeDefinition},
    names::TypeNames,
    notes::read_notes,
    references::References,
};

const DEPTH: usize = 16;
const STEPS: usize = 5_000;
const FIELDS: usize = 200;
const CHOICES: usize = 30;
const DEFINITIONS: usize = 100;
const NAME_BYTES: usize = 128;
const LITERAL_BYTES: usize = 120;

type Schema = Map<String, Value>;

/// Reads a schema; `name` is the type name for a reference to the whole schema.
pub(super) fn read_shape(schema: &Value, name: &str, names: &mut TypeNames) -> SchemaShape {
    let mut reader = SchemaReader {
        references: References::new(schema),
        left: STEPS,
        indexes: HashMap::new(),
        targets: Vec::new(),
        inlined: Vec::new(),
        is_cut: false,
    };
    let root = reader.read(schema, DEPTH);
    let mut definitions: Vec<TypeDefinition> = Vec::new();
    // Reading a definition can add more.
    while let Some(to) = reader.targets.get(definitions.len()).copied() {
        let target = reader.references.find(to).unwrap_or(&Value::Bool(true));
        let last = to.rsplit('/').next().filter(|last| *last != "#").unwrap_or(name);
        let r#type = reader.read(target, DEPTH);
        let name = names.make_unique(last);
        definitions.push(TypeDefinition { name, r#type, uses: 0, is_recursive: false });
    }
    super::recursion::resolve_recursion(SchemaShape { root, definitions, is_cut: reader.is_cut })
}

struct SchemaReader<'a> {
    references: References<'a>,
    /// How many more schemas may be read.
    left: usize,
    /// The index of each reference in the list of definitions.
    indexes: HashMap<&'a str, usize>,
    /// The references in the order of their definitions.
    targets: Vec<&'a str>,
    /// References being read inline, to stop at recursion.
    inlined: Vec<&'a str>,
    is_cut: bool,
}

impl<'a> SchemaReader<'a> {
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
        if let Some(to) = References::target_of(schema) {
            parts.push(if has_fields {
                self.read_inline(to, depth)
            } else {
                self.read_reference(to)
            });
        }
        parts.extend(self.read_typed(schema, depth));
        if let Some(Value::Array(all)) = schema.get("allOf") {
            for part in self.take_first(all, CHOICES) {
                let to = part.as_object().and_then(References::target_of);
                parts.push(match to {
                    // Inline, so that its fields are merged; alone, it keeps its name.
                    Some(to) if all.len() > 1 || !parts.is_empty() => self.read_inline(to, depth),
                    _ => self.read(part, depth),
                });
            }
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = schema.get(key)
                && !choices.is_empty()
            {
                let choices = self.take_first(choices, CHOICES);
                let read = choices.iter().map(|choice| self.read(choice, depth)).collect();
                parts.push(union(read));
            }
        }
        intersection(parts)
    }

    /// Reads `type` and the keywords that imply a type.
    fn read_typed(&mut self, schema: &'a Schema, depth: usize) -> Option<Type> {
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
            // Tuples in drafts before 2020-12.
            (_, Some(Value::Array(first))) => (first, schema.get("additionalItems")),
            (_, Some(items)) => return Type::Array(Box::new(self.read(items, depth))),
            (_, None) => return Type::Array(Box::new(Type::Unknown)),
        };
        let first = self.take_first(first, CHOICES);
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
                let notes = read_notes(self.note_sources(value));
                let is_required = is_required.contains(name.as_str());
                fields.push(Field { name: shown, r#type, is_required, notes });
            }
        }
        let others = self.read_others(schema, depth);
        // A required field without a schema is still required.
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
                Type::Object(ObjectType { fields, has_others })
            }
        }
    }

    /// Returns the type of further fields; `None` if the schema has none.
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
        // Of the remaining values, only the types are added.
        let types = values.iter().skip(CHOICES).take(STEPS).map(type_of);
        for r#type in types {
            if !choices.contains(&r#type) {
                choices.push(r#type);
            }
        }
        union(choices)
    }

    /// Returns a reference to a definition, which is read later.
    fn read_reference(&mut self, to: &'a str) -> Type {
        if let Some(at) = self.indexes.get(to) {
            return Type::Named(*at);
        }
        if self.references.find(to).is_none() {
            return Type::Unknown;
        }
        if self.targets.len() >= DEFINITIONS {
            self.is_cut = true;
            return Type::Unknown;
        }
        self.indexes.insert(to, self.targets.len());
        self.targets.push(to);
        Type::Named(self.targets.len() - 1)
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

    /// Returns the schemas that may have notes: this one, and the one that it refers to.
    fn note_sources(&self, schema: &'a Value) -> impl Iterator<Item = &'a Schema> + use<'a> {
        let own = schema.as_object();
        let other = own.and_then(References::target_of).and_then(|to| self.references.find(to));
        own.into_iter().chain(other.and_then(Value::as_object))
    }

    fn field_name(&mut self, name: &str, count: usize) -> Option<String> {
        if count < FIELDS && name.len() <= NAME_BYTES {
            return Some(clean_text(name));
        }
        self.is_cut = true;
        None
    }

    fn take_first(&mut self, list: &'a [Value], max: usize) -> &'a [Value] {
        self.is_cut |= list.len() > max;
        list.get(..max).unwrap_or(list)
    }
}

fn literal(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::String(text) if text.len() <= LITERAL_BYTES => {
            Type::Literal(Value::String(clean_text(text)))
        }
        Value::Bool(_) | Value::Number(_) => Type::Literal(value.clone()),
        other => type_of(other),
    }
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        Value::Bool(_) => Type::Boolean,
        Value::Number(_) => Type::Number,
        Value::String(_) => Type::String,
        Value::Array(_) => Type::Array(Box::new(Type::Unknown)),
        Value::Object(_) => Type::Map(Box::new(Type::Unknown)),
    }
}
