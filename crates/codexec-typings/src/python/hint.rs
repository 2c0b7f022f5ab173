//! Writes types as Python type hints.

use serde_json::Value;

use crate::{
    detail::{BUDGET_BYTES, DetailLevel},
    model::{Field, MAX_CHOICES, SchemaShape, Type},
    names::quote,
};

/// How objects are written: inline or as classes.
pub(super) trait ObjectStyle: Sized {
    fn object(
        hints: &mut HintWriter<Self>,
        shape: &SchemaShape,
        fields: &[Field],
        name: &str,
    ) -> String;

    /// Writes the target of a reference.
    fn named(hints: &mut HintWriter<Self>, shape: &SchemaShape, at: usize, name: &str) -> String;
}

/// Writes the type hints of one tool.
pub(super) struct HintWriter<O> {
    pub(super) level: DetailLevel,
    pub(super) objects: O,
    pub(super) is_cut: bool,
    depth: usize,
    /// Bytes written so far; beyond the budget, types are abbreviated.
    written: usize,
}

impl<O: ObjectStyle> HintWriter<O> {
    pub(super) fn new(level: DetailLevel, objects: O) -> HintWriter<O> {
        HintWriter { level, objects, is_cut: false, depth: level.depth, written: 0 }
    }

    /// Returns the hint of a type; `name` is the preferred name of a class for it.
    pub(super) fn write(&mut self, shape: &SchemaShape, r#type: &Type, name: &str) -> String {
        if self.written > BUDGET_BYTES || (self.depth == 0 && !r#type.is_leaf()) {
            self.is_cut = true;
            return bare_type(r#type).to_owned();
        }
        let (outer, before) = (self.depth, self.written);
        self.depth = self.depth.saturating_sub(1);
        let text = self.write_type(shape, r#type, name);
        self.depth = outer;
        // The nested types are already counted.
        self.written = self.written.max(before + text.len());
        text
    }

    fn write_type(&mut self, shape: &SchemaShape, r#type: &Type, name: &str) -> String {
        match r#type {
            Type::Literal(value) => match literal(value) {
                Some(text) => format!("Literal[{text}]"),
                None => "float".to_owned(),
            },
            Type::Array(items) => format!("list[{}]", self.write(shape, items, name)),
            Type::Tuple { items, rest: None } if !items.is_empty() => {
                let items: Vec<String> =
                    items.iter().map(|item| self.write(shape, item, name)).collect();
                format!("tuple[{}]", items.join(", "))
            }
            Type::Tuple { .. } => "list".to_owned(),
            Type::Map(values) if **values == Type::Unknown => "dict".to_owned(),
            Type::Map(values) => format!("dict[str, {}]", self.write(shape, values, name)),
            Type::Object(object) => self.write_object(shape, &object.fields, name),
            Type::Union(choices) => self.write_union(shape, choices, name),
            Type::Intersection(parts) => match shape.fields_of(r#type, &mut { MAX_CHOICES }) {
                Some(fields) if !fields.is_empty() => self.write_object(shape, &fields, name),
                _ => parts.first().map_or("Any".to_owned(), |part| self.write(shape, part, name)),
            },
            Type::Named(at) => O::named(self, shape, *at, name),
            other => simple_type(other).to_owned(),
        }
    }

    fn write_object(&mut self, shape: &SchemaShape, fields: &[Field], name: &str) -> String {
        let shown = fields.get(..self.level.fields).unwrap_or(fields);
        self.is_cut |= shown.len() < fields.len();
        O::object(self, shape, shown, name)
    }

    fn write_union(&mut self, shape: &SchemaShape, choices: &[Type], name: &str) -> String {
        let shown = choices.get(..self.level.choices).unwrap_or(choices);
        let literals: Vec<String> = shown
            .iter()
            .filter_map(|choice| match choice {
                Type::Literal(value) => literal(value),
                _ => None,
            })
            .collect();
        let mut parts = Vec::new();
        if !literals.is_empty() {
            parts.push(format!("Literal[{}]", literals.join(", ")));
        }
        for choice in shown {
            let is_literal = matches!(choice, Type::Literal(value) if literal(value).is_some());
            if !is_literal {
                let part = self.write(shape, choice, name);
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
        }
        if shown.len() < choices.len() {
            self.is_cut = true;
            parts.push("Any".to_owned());
        }
        parts.join(" | ")
    }

    /// Returns the hint of one field.
    pub(super) fn write_field(&mut self, shape: &SchemaShape, field: &Field) -> String {
        let hint = self.write(shape, &field.r#type, &field.name);
        if field.is_required { hint } else { format!("NotRequired[{hint}]") }
    }
}

/// Writes each object in place: `{"a": str, "b": NotRequired[int]}`.
#[derive(Default)]
pub(super) struct InlineObjects {
    /// References being written, to stop at recursion.
    path: Vec<usize>,
}

impl ObjectStyle for InlineObjects {
    fn object(
        hints: &mut HintWriter<InlineObjects>,
        shape: &SchemaShape,
        fields: &[Field],
        _: &str,
    ) -> String {
        let fields: Vec<String> = fields
            .iter()
            .map(|field| format!("{}: {}", quote(&field.name), hints.write_field(shape, field)))
            .collect();
        format!("{{{}}}", fields.join(", "))
    }

    fn named(
        hints: &mut HintWriter<InlineObjects>,
        shape: &SchemaShape,
        at: usize,
        name: &str,
    ) -> String {
        let Some(definition) = shape.definition(at) else { return "Any".to_owned() };
        if hints.objects.path.contains(&at) {
            return bare_type(&definition.r#type).to_owned();
        }
        hints.objects.path.push(at);
        let text = hints.write(shape, &definition.r#type, name);
        hints.objects.path.pop();
        text
    }
}

/// Returns a Python literal; `None` for fractions, which `Literal` does not allow.
fn literal(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(quote(text)),
        Value::Bool(is_true) => Some(if *is_true { "True" } else { "False" }.to_owned()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn simple_type(r#type: &Type) -> &'static str {
    match r#type {
        Type::Never => "Never",
        Type::Null => "None",
        Type::Boolean => "bool",
        Type::Integer => "int",
        Type::Number => "float",
        Type::String => "str",
        Type::Unknown => "Any",
        _ => "",
    }
}

/// Returns the abbreviated type where the limit is reached.
fn bare_type(r#type: &Type) -> &'static str {
    match r#type {
        Type::Array(_) | Type::Tuple { .. } => "list",
        Type::Map(_) | Type::Object(_) => "dict",
        Type::Literal(_) | Type::Union(_) | Type::Intersection(_) | Type::Named(_) => "Any",
        other => simple_type(other),
    }
}
