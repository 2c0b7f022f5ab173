//! Merges several types of one value into one type.

use super::model::{Field, ObjectType, Type};

/// Returns the union of types, flattened and without duplicates.
pub(super) fn union(choices: Vec<Type>) -> Type {
    let mut flat: Vec<Type> = Vec::new();
    for choice in choices {
        let inner = match choice {
            Type::Union(inner) => inner,
            other => vec![other],
        };
        for one in inner {
            if one == Type::Unknown {
                return Type::Unknown;
            }
            if one != Type::Never && !flat.contains(&one) {
                flat.push(one);
            }
        }
    }
    // Every integer is a number.
    if flat.contains(&Type::Number) {
        flat.retain(|one| *one != Type::Integer);
    }
    match flat.len() {
        0 => Type::Never,
        1 => flat.pop().unwrap_or(Type::Unknown),
        _ => Type::Union(flat),
    }
}

/// Returns the intersection of types, merged into one type where possible.
pub(super) fn intersection(parts: Vec<Type>) -> Type {
    let mut merged: Vec<Type> = Vec::new();
    for part in parts {
        match part {
            Type::Unknown => {}
            Type::Never => return Type::Never,
            part if merged.contains(&part) => {}
            Type::Object(object) => {
                let before = merged.iter_mut().find_map(|other| match other {
                    Type::Object(before) => Some(before),
                    _ => None,
                });
                match before {
                    Some(before) => merge_objects(before, object),
                    None => merged.push(Type::Object(object)),
                }
            }
            part => merged.push(part),
        }
    }
    // Drop each type that another one narrows.
    for at in (0..merged.len()).rev() {
        let is_redundant = merged.get(at).is_some_and(|wide| {
            merged.iter().enumerate().any(|(other, narrow)| other != at && is_within(narrow, wide))
        });
        if is_redundant {
            merged.remove(at);
        }
    }
    match merged.len() {
        0 => Type::Unknown,
        1 => merged.pop().unwrap_or(Type::Unknown),
        _ => Type::Intersection(merged),
    }
}

/// Returns true if every value of `narrow` is also one of `wide`.
fn is_within(narrow: &Type, wide: &Type) -> bool {
    match (narrow, wide) {
        (Type::Union(choices), wide) => choices.iter().all(|choice| is_within(choice, wide)),
        (Type::Literal(value), Type::String) => value.is_string(),
        (Type::Literal(value), Type::Number) => value.is_number(),
        (Type::Literal(value), Type::Integer) => value.is_i64() || value.is_u64(),
        (Type::Literal(value), Type::Boolean) => value.is_boolean(),
        (Type::Integer, Type::Number) => true,
        (Type::Object(_) | Type::Map(_) | Type::Named(_), Type::Map(values)) => {
            **values == Type::Unknown
        }
        _ => false,
    }
}

fn merge_objects(into: &mut ObjectType, from: ObjectType) {
    into.has_others |= from.has_others;
    for field in from.fields {
        add_field(&mut into.fields, field);
    }
}

fn add_field(fields: &mut Vec<Field>, field: Field) {
    match fields.iter_mut().find(|known| known.name == field.name) {
        None => fields.push(field),
        Some(known) => {
            let before = std::mem::replace(&mut known.r#type, Type::Unknown);
            known.r#type = intersection(vec![before, field.r#type]);
            known.is_required |= field.is_required;
            if known.notes.is_empty() {
                known.notes = field.notes;
            }
        }
    }
}

/// Returns the fields of a value that has all of these types.
pub(super) fn all_of_fields(parts: Vec<Vec<Field>>) -> Vec<Field> {
    let mut fields = Vec::new();
    for field in parts.into_iter().flatten() {
        add_field(&mut fields, field);
    }
    fields
}

/// Returns the fields of a value that has one of these types.
pub(super) fn any_of_fields(choices: Vec<Vec<Field>>) -> Option<Vec<Field>> {
    let count = choices.len();
    let mut fields: Vec<(Field, usize)> = Vec::new();
    for field in choices.into_iter().flatten() {
        match fields.iter_mut().find(|(known, _)| known.name == field.name) {
            None => {
                let required = usize::from(field.is_required);
                fields.push((field, required));
            }
            Some((known, required)) => {
                *required += usize::from(field.is_required);
                let before = std::mem::replace(&mut known.r#type, Type::Unknown);
                known.r#type = union(vec![before, field.r#type]);
            }
        }
    }
    let finish = |(mut field, required): (Field, usize)| {
        field.is_required = required == count;
        field
    };
    Some(fields.into_iter().map(finish).collect())
}
