//! Objects as `TypedDict`s, each written once.

use std::collections::HashSet;

use super::super::{
    model::{Field, Shape, Type},
    names::{Names, is_python_name, quoted},
};
use super::hint::{Hints, Objects};

pub(super) struct Classes {
    names: Names,
    /// The definitions that are written or being written.
    defined: HashSet<String>,
    written: Vec<String>,
}

impl Classes {
    pub(super) fn new(names: Names) -> Classes {
        Classes { names, defined: HashSet::new(), written: Vec::new() }
    }

    /// What is used stands before what uses it.
    pub(super) fn text(&self) -> String {
        self.written.concat()
    }
}

impl Objects for Classes {
    fn object(hints: &mut Hints<Classes>, shape: &Shape, fields: &[Field], name: &str) -> String {
        let name = hints.objects.names.make(name);
        define(hints, shape, fields, &name);
        name
    }

    fn named(hints: &mut Hints<Classes>, shape: &Shape, at: usize, name: &str) -> String {
        let Some(definition) = shape.definition(at) else { return "Any".to_owned() };
        if hints.objects.defined.contains(&definition.name) {
            return definition.name.clone();
        }
        let fields = match &definition.r#type {
            Type::Object(object) => Some(object.fields.clone()),
            Type::Both(_) => shape.fields_of(&definition.r#type, &mut { 100 }),
            _ => None,
        };
        match fields.filter(|fields| !fields.is_empty()) {
            Some(fields) => {
                hints.objects.defined.insert(definition.name.clone());
                let shown = fields.get(..hints.look.fields).unwrap_or(&fields);
                hints.is_cut |= shown.len() < fields.len();
                define(hints, shape, shown, &definition.name);
                definition.name.clone()
            }
            None if definition.is_recursive => {
                hints.objects.defined.insert(definition.name.clone());
                let text = hints.of(shape, &definition.r#type, &definition.name);
                hints.objects.written.push(format!("{} = {text}\n", definition.name));
                definition.name.clone()
            }
            None => hints.of(shape, &definition.r#type, name),
        }
    }
}

fn define(hints: &mut Hints<Classes>, shape: &Shape, fields: &[Field], name: &str) {
    let is_class = fields.iter().all(|field| is_python_name(&field.name));
    let mut lines = Vec::new();
    for field in fields {
        let hint = hints.field(shape, field);
        let comment = field.notes.comment(hints.look.inner_note_bytes, true);
        let comment = if comment.is_empty() { comment } else { format!("  # {comment}") };
        lines.push(match is_class {
            true => format!("    {}: {hint}{comment}\n", field.name),
            false => format!("    {}: {hint},{comment}\n", quoted(&field.name)),
        });
    }
    let lines = lines.concat();
    let text = match is_class {
        true if lines.is_empty() => format!("class {name}(TypedDict): ...\n"),
        true => format!("class {name}(TypedDict):\n{lines}"),
        false => format!("{name} = TypedDict(\"{name}\", {{\n{lines}}})\n"),
    };
    hints.objects.written.push(text);
}
