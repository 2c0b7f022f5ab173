//! Finds recursive definitions, counts uses, and removes circular ones.

use super::{
    merge::{intersection, union},
    model::{SchemaShape, Type},
};

/// Counts uses, marks recursive definitions, and removes references that define a name only by
/// itself.
pub(super) fn resolve_recursion(mut shape: SchemaShape) -> SchemaShape {
    let direct: Vec<Vec<usize>> =
        shape.definitions.iter().map(|one| referenced(&one.r#type, LinkDepth::Direct)).collect();
    let all: Vec<Vec<usize>> =
        shape.definitions.iter().map(|one| referenced(&one.r#type, LinkDepth::All)).collect();
    let roots = referenced(&shape.root, LinkDepth::All);
    for at in roots.iter().chain(all.iter().flatten()) {
        if let Some(definition) = shape.definitions.get_mut(*at) {
            definition.uses += 1;
        }
    }
    for (at, definition) in shape.definitions.iter_mut().enumerate() {
        definition.is_recursive = leads_to(&all, at, at);
        let r#type = std::mem::replace(&mut definition.r#type, Type::Unknown);
        // `A = A | B` is the same as `A = B`.
        definition.r#type =
            remove_circular(r#type, &|other| leads_to(&direct, other, at) || other == at);
    }
    shape
}

#[derive(Clone, Copy, PartialEq)]
enum LinkDepth {
    /// Only references that are a choice or part of the type itself.
    Direct,
    /// Also references nested in fields and items.
    All,
}

/// Returns the definitions that a type refers to.
fn referenced(r#type: &Type, depth: LinkDepth) -> Vec<usize> {
    let mut found = Vec::new();
    collect(r#type, depth, &mut found);
    found
}

fn collect(r#type: &Type, depth: LinkDepth, found: &mut Vec<usize>) {
    match r#type {
        Type::Named(at) => found.push(*at),
        Type::Union(parts) | Type::Intersection(parts) => {
            for part in parts {
                collect(part, depth, found);
            }
        }
        _ if depth == LinkDepth::Direct => {}
        Type::Array(inner) | Type::Map(inner) => collect(inner, depth, found),
        Type::Tuple { items, rest } => {
            for item in items.iter().chain(rest.as_deref()) {
                collect(item, depth, found);
            }
        }
        Type::Object(object) => {
            for field in &object.fields {
                collect(&field.r#type, depth, found);
            }
        }
        _ => {}
    }
}

/// Returns true if `to` can be reached from `from`.
fn leads_to(links: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut seen = vec![false; links.len()];
    let mut pending = vec![from];
    while let Some(at) = pending.pop() {
        for next in links.get(at).into_iter().flatten() {
            if *next == to {
                return true;
            }
            if let Some(seen) = seen.get_mut(*next).filter(|seen| !**seen) {
                *seen = true;
                pending.push(*next);
            }
        }
    }
    false
}

fn remove_circular(r#type: Type, is_circular: &dyn Fn(usize) -> bool) -> Type {
    let remaining = |parts: Vec<Type>| -> Vec<Type> {
        let is_kept = |part: &Type| !matches!(part, Type::Named(at) if is_circular(*at));
        parts.into_iter().filter(is_kept).map(|part| remove_circular(part, is_circular)).collect()
    };
    match r#type {
        Type::Named(at) if is_circular(at) => Type::Unknown,
        Type::Union(parts) => union(remaining(parts)),
        Type::Intersection(parts) => intersection(remaining(parts)),
        other => other,
    }
}
