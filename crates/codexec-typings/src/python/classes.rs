//! Writes objects as `TypedDict` classes, each once.

use std::collections::HashSet;

use super::hint::{HintWriter, ObjectStyle};
use crate::{
    model::{Field, MAX_CHOICES, SchemaShape, Type},
    names::{TypeNames, is_python_name, quote},
};

/// Writes each object as a `TypedDict` class.
pub(super) struct ClassObjects {
    names: TypeNames,
    /// Names of the definitions that are written or being written.
    defined: HashSet<String>,
    written: Vec<String>,
}

impl ClassObjects {
    pub(super) fn new(names: TypeNames) -> ClassObjects {
        ClassObjects { names, defined: HashSet::new(), written: Vec::new() }
    }

    /// Returns all classes; each comes after those that it uses.
    pub(super) fn text(&self) -> String {
        self.written.concat()
    }
}

impl ObjectStyle for ClassObjects {
    fn object(
        hints: &mut HintWriter<ClassObjects>,
        shape: &SchemaShape,
        fields: &[Field],
        name: &str,
    ) -> String {
        let name = hints.objects.names.make_unique(name);
        write_class(hints, shape, fields, &name);
        name
    }

    fn named(
        hints: &mut HintWriter<ClassObjects>,
        shape: &SchemaShape,
        at: usize,
        name: &str,
    ) -> String {
        let Some(definition) = shape.definition(at) else { return "Any".to_owned() };
        if hints.objects.defined.contains(&definition.name) {
            return definition.name.clone();
        }
        let fields = match &definition.r#type {
            Type::Object(object) => Some(object.fields.clone()),
            Type::Intersection(_) => shape.fields_of(&definition.r#type, &mut { MAX_CHOICES }),
            _ => None,
        };
        match fields.filter(|fields| !fields.is_empty()) {
            Some(fields) => {
                hints.objects.defined.insert(definition.name.clone());
                let shown = fields.get(..hints.level.fields).unwrap_or(&fields);
                hints.is_cut |= shown.len() < fields.len();
                write_class(hints, shape, shown, &definition.name);
                definition.name.clone()
            }
            None if definition.is_recursive => {
                hints.objects.defined.insert(definition.name.clone());
                let text = hints.write(shape, &definition.r#type, &definition.name);
                hints.objects.written.push(format!("{} = {text}\n", definition.name));
                definition.name.clone()
            }
            None => hints.write(shape, &definition.r#type, name),
        }
    }
}

fn write_class(
    hints: &mut HintWriter<ClassObjects>,
    shape: &SchemaShape,
    fields: &[Field],
    name: &str,
) {
    let is_class = fields.iter().all(|field| is_python_name(&field.name));
    let mut lines = Vec::new();
    for field in fields {
        let hint = hints.write_field(shape, field);
        let comment = field.notes.comment(hints.level.inner_note_bytes, true);
        let comment = if comment.is_empty() { comment } else { format!("  # {comment}") };
        lines.push(match is_class {
            true => format!("    {}: {hint}{comment}\n", field.name),
            false => format!("    {}: {hint},{comment}\n", quote(&field.name)),
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
