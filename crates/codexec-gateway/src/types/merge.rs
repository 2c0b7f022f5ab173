//! Several schemas of one value, made one.

use super::model::{Field, Object, Type};

/// One of these. Flat, without repetitions.
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

/// All of these at once.
pub(super) fn both(parts: Vec<Type>) -> Type {
    let mut kept: Vec<Type> = Vec::new();
    for part in parts {
        match part {
            Type::Unknown => {}
            Type::Never => return Type::Never,
            part if kept.contains(&part) => {}
            Type::Object(object) => {
                let before = kept.iter_mut().find_map(|kept| match kept {
                    Type::Object(before) => Some(before),
                    _ => None,
                });
                match before {
                    Some(before) => join(before, object),
                    None => kept.push(Type::Object(object)),
                }
            }
            part => kept.push(part),
        }
    }
    // What the others say more exactly needs no saying.
    for at in (0..kept.len()).rev() {
        let is_said = kept.get(at).is_some_and(|wide| {
            kept.iter().enumerate().any(|(other, narrow)| other != at && is_within(narrow, wide))
        });
        if is_said {
            kept.remove(at);
        }
    }
    match kept.len() {
        0 => Type::Unknown,
        1 => kept.pop().unwrap_or(Type::Unknown),
        _ => Type::Both(kept),
    }
}

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

fn join(into: &mut Object, from: Object) {
    into.has_others |= from.has_others;
    for field in from.fields {
        add(&mut into.fields, field);
    }
}

fn add(fields: &mut Vec<Field>, field: Field) {
    match fields.iter_mut().find(|known| known.name == field.name) {
        None => fields.push(field),
        Some(known) => {
            let before = std::mem::replace(&mut known.r#type, Type::Unknown);
            known.r#type = both(vec![before, field.r#type]);
            known.is_required |= field.is_required;
            if known.notes.is_empty() {
                known.notes = field.notes;
            }
        }
    }
}

/// The fields of a value that is all of these.
pub(super) fn all_of(parts: Vec<Vec<Field>>) -> Vec<Field> {
    let mut fields = Vec::new();
    for field in parts.into_iter().flatten() {
        add(&mut fields, field);
    }
    fields
}

/// The fields of a value that is one of these.
pub(super) fn any_of(choices: Vec<Vec<Field>>) -> Option<Vec<Field>> {
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
