//! Definitions that refer to definitions: which lead back to themselves, and how often each is
//! used.

use super::{
    merge::{both, union},
    model::{Shape, Type},
};

/// Counts, and takes out what would define a name by nothing but itself.
pub(super) fn settle(mut shape: Shape) -> Shape {
    let direct: Vec<Vec<usize>> =
        shape.definitions.iter().map(|one| named(&one.r#type, Reach::Direct)).collect();
    let all: Vec<Vec<usize>> =
        shape.definitions.iter().map(|one| named(&one.r#type, Reach::All)).collect();
    let roots = named(&shape.root, Reach::All);
    for at in roots.iter().chain(all.iter().flatten()) {
        if let Some(definition) = shape.definitions.get_mut(*at) {
            definition.uses += 1;
        }
    }
    for (at, definition) in shape.definitions.iter_mut().enumerate() {
        definition.is_recursive = leads_to(&all, at, at);
        let r#type = std::mem::replace(&mut definition.r#type, Type::Unknown);
        // `A = A | B` says no more than `A = B`.
        definition.r#type = without(r#type, &|other| leads_to(&direct, other, at) || other == at);
    }
    shape
}

#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// Only as one of the choices or parts.
    Direct,
    All,
}

fn named(r#type: &Type, reach: Reach) -> Vec<usize> {
    let mut found = Vec::new();
    collect(r#type, reach, &mut found);
    found
}

fn collect(r#type: &Type, reach: Reach, found: &mut Vec<usize>) {
    match r#type {
        Type::Named(at) => found.push(*at),
        Type::Union(parts) | Type::Both(parts) => {
            for part in parts {
                collect(part, reach, found);
            }
        }
        _ if reach == Reach::Direct => {}
        Type::Array(inner) | Type::Map(inner) => collect(inner, reach, found),
        Type::Tuple { items, rest } => {
            for item in items.iter().chain(rest.as_deref()) {
                collect(item, reach, found);
            }
        }
        Type::Object(object) => {
            for field in &object.fields {
                collect(&field.r#type, reach, found);
            }
        }
        _ => {}
    }
}

fn leads_to(links: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut seen = vec![false; links.len()];
    let mut waiting = vec![from];
    while let Some(at) = waiting.pop() {
        for next in links.get(at).into_iter().flatten() {
            if *next == to {
                return true;
            }
            if let Some(seen) = seen.get_mut(*next).filter(|seen| !**seen) {
                *seen = true;
                waiting.push(*next);
            }
        }
    }
    false
}

fn without(r#type: Type, is_circular: &dyn Fn(usize) -> bool) -> Type {
    let kept = |parts: Vec<Type>| -> Vec<Type> {
        let is_kept = |part: &Type| !matches!(part, Type::Named(at) if is_circular(*at));
        parts.into_iter().filter(is_kept).map(|part| without(part, is_circular)).collect()
    };
    match r#type {
        Type::Named(at) if is_circular(at) => Type::Unknown,
        Type::Union(parts) => union(kept(parts)),
        Type::Both(parts) => both(kept(parts)),
        other => other,
    }
}
