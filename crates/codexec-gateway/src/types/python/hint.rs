//! Types as Python's annotations.

use serde_json::Value;

use super::super::{
    look::{BUDGET_BYTES, Look},
    model::{Field, Shape, Type},
    names::quoted,
};

/// How objects are written: in their place, or as classes.
pub(super) trait Objects: Sized {
    fn object(hints: &mut Hints<Self>, shape: &Shape, fields: &[Field], name: &str) -> String;

    /// What a reference leads to.
    fn named(hints: &mut Hints<Self>, shape: &Shape, at: usize, name: &str) -> String;
}

pub(super) struct Hints<O> {
    pub(super) look: Look,
    pub(super) objects: O,
    pub(super) is_cut: bool,
    depth: usize,
    /// All that was written so far: beyond the budget nothing more is.
    written: usize,
}

impl<O: Objects> Hints<O> {
    pub(super) fn new(look: Look, objects: O) -> Hints<O> {
        Hints { look, objects, is_cut: false, depth: look.depth, written: 0 }
    }

    /// `name`: what a class for it could be called.
    pub(super) fn of(&mut self, shape: &Shape, r#type: &Type, name: &str) -> String {
        if self.written > BUDGET_BYTES || (self.depth == 0 && !r#type.is_leaf()) {
            self.is_cut = true;
            return bare(r#type).to_owned();
        }
        let (outer, before) = (self.depth, self.written);
        self.depth = self.depth.saturating_sub(1);
        let text = self.written_out(shape, r#type, name);
        self.depth = outer;
        // What stands within it is counted already.
        self.written = self.written.max(before + text.len());
        text
    }

    fn written_out(&mut self, shape: &Shape, r#type: &Type, name: &str) -> String {
        match r#type {
            Type::Literal(value) => match literal(value) {
                Some(text) => format!("Literal[{text}]"),
                None => "float".to_owned(),
            },
            Type::Array(items) => format!("list[{}]", self.of(shape, items, name)),
            Type::Tuple { items, rest: None } if !items.is_empty() => {
                let items: Vec<String> =
                    items.iter().map(|item| self.of(shape, item, name)).collect();
                format!("tuple[{}]", items.join(", "))
            }
            Type::Tuple { .. } => "list".to_owned(),
            Type::Map(values) if **values == Type::Unknown => "dict".to_owned(),
            Type::Map(values) => format!("dict[str, {}]", self.of(shape, values, name)),
            Type::Object(object) => self.object(shape, &object.fields, name),
            Type::Union(choices) => self.union(shape, choices, name),
            Type::Both(parts) => match shape.fields_of(r#type, &mut { 100 }) {
                Some(fields) if !fields.is_empty() => self.object(shape, &fields, name),
                _ => parts.first().map_or("Any".to_owned(), |part| self.of(shape, part, name)),
            },
            Type::Named(at) => O::named(self, shape, *at, name),
            other => simple(other).to_owned(),
        }
    }

    fn object(&mut self, shape: &Shape, fields: &[Field], name: &str) -> String {
        let shown = fields.get(..self.look.fields).unwrap_or(fields);
        self.is_cut |= shown.len() < fields.len();
        O::object(self, shape, shown, name)
    }

    fn union(&mut self, shape: &Shape, choices: &[Type], name: &str) -> String {
        let shown = choices.get(..self.look.choices).unwrap_or(choices);
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
            let is_done = matches!(choice, Type::Literal(value) if literal(value).is_some());
            if !is_done {
                let part = self.of(shape, choice, name);
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

    /// The hint of one field.
    pub(super) fn field(&mut self, shape: &Shape, field: &Field) -> String {
        let hint = self.of(shape, &field.r#type, &field.name);
        if field.is_required { hint } else { format!("NotRequired[{hint}]") }
    }
}

/// `{"a": str, "b": NotRequired[int]}`
#[derive(Default)]
pub(super) struct Inline {
    /// References being written: one that leads back ends the walk.
    path: Vec<usize>,
}

impl Objects for Inline {
    fn object(hints: &mut Hints<Inline>, shape: &Shape, fields: &[Field], _: &str) -> String {
        let fields: Vec<String> = fields
            .iter()
            .map(|field| format!("{}: {}", quoted(&field.name), hints.field(shape, field)))
            .collect();
        format!("{{{}}}", fields.join(", "))
    }

    fn named(hints: &mut Hints<Inline>, shape: &Shape, at: usize, name: &str) -> String {
        let Some(definition) = shape.definition(at) else { return "Any".to_owned() };
        if hints.objects.path.contains(&at) {
            return bare(&definition.r#type).to_owned();
        }
        hints.objects.path.push(at);
        let text = hints.of(shape, &definition.r#type, name);
        hints.objects.path.pop();
        text
    }
}

/// Python knows no fractions as literals.
fn literal(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(quoted(text)),
        Value::Bool(is_true) => Some(if *is_true { "True" } else { "False" }.to_owned()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        Value::Number(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn simple(r#type: &Type) -> &'static str {
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

/// What is left of a type where it must end.
fn bare(r#type: &Type) -> &'static str {
    match r#type {
        Type::Array(_) | Type::Tuple { .. } => "list",
        Type::Map(_) | Type::Object(_) => "dict",
        Type::Literal(_) | Type::Union(_) | Type::Both(_) | Type::Named(_) => "Any",
        other => simple(other),
    }
}
