//! What a value can be, in no language yet.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Unknown,
    Never,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// A text, a number, a boolean or null.
    Literal(Value),
    Array(Box<Type>),
    Tuple {
        items: Vec<Type>,
        rest: Option<Box<Type>>,
    },
    /// Any names, values of one type.
    Map(Box<Type>),
    Object(Object),
    /// Two or more, none of them a union.
    Union(Vec<Type>),
    /// All of these at once, where they could not be made one.
    Both(Vec<Type>),
    /// A place in [`Shape::definitions`].
    Named(usize),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Object {
    pub(super) fields: Vec<Field>,
    /// Whether the schema says what other fields there can be.
    pub(super) has_others: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) r#type: Type,
    pub(super) is_required: bool,
    pub(super) notes: Notes,
}

/// What the schema says about a value beside its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Notes {
    /// On one line, cleaned.
    pub(super) text: String,
    /// Limits and formats, in few words.
    pub(super) facts: Vec<String>,
    pub(super) default: Option<Value>,
}

/// A schema, read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    pub(super) root: Type,
    pub(super) definitions: Vec<Definition>,
    /// Whether something was left out because there is too much of it.
    pub(super) is_cut: bool,
}

/// What a reference leads to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) r#type: Type,
    /// How often it is referred to.
    pub(super) uses: usize,
    pub(super) is_recursive: bool,
}

impl Shape {
    pub(super) fn definition(&self, at: usize) -> Option<&Definition> {
        self.definitions.get(at)
    }

    /// The type behind a name. Definitions never lead straight back to themselves.
    pub(super) fn resolved<'a>(&'a self, r#type: &'a Type) -> &'a Type {
        let mut found = r#type;
        while let Type::Named(at) = found {
            match self.definition(*at) {
                Some(definition) => found = &definition.r#type,
                None => return &Type::Unknown,
            }
        }
        found
    }

    /// The fields of the whole: those of every choice, required where every choice requires them.
    pub(super) fn fields(&self) -> Option<Vec<Field>> {
        self.fields_of(&self.root, &mut { MAX_CHOICES })
    }

    /// `left`: how many more choices are looked into.
    pub(super) fn fields_of(&self, r#type: &Type, left: &mut usize) -> Option<Vec<Field>> {
        *left = left.checked_sub(1)?;
        match self.resolved(r#type) {
            Type::Object(object) => Some(object.fields.clone()),
            Type::Map(values) if **values == Type::Unknown => Some(Vec::new()),
            Type::Union(choices) => {
                let choices = choices.iter().map(|choice| self.fields_of(choice, left));
                super::merge::any_of(choices.collect::<Option<Vec<_>>>()?)
            }
            Type::Both(parts) => {
                let parts = parts.iter().map(|part| self.fields_of(part, left));
                Some(super::merge::all_of(parts.collect::<Option<Vec<_>>>()?))
            }
            Type::Unknown => Some(Vec::new()),
            _ => None,
        }
    }
}

/// Choices within choices could be without end.
const MAX_CHOICES: usize = 100;

impl Notes {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.facts.is_empty() && self.default.is_none()
    }
}

impl Type {
    /// Whether nothing is nested in it, so that it is written however deep it stands.
    pub(super) fn is_leaf(&self) -> bool {
        match self {
            Type::Union(choices) => choices.iter().all(Type::is_leaf),
            Type::Array(_)
            | Type::Tuple { .. }
            | Type::Map(_)
            | Type::Object(_)
            | Type::Both(_)
            | Type::Named(_) => false,
            _ => true,
        }
    }

    /// Whether it fits on one line without a loss: few fields and nothing said about them.
    pub(super) fn is_plain(&self, left: &mut usize) -> bool {
        match self {
            Type::Array(inner) | Type::Map(inner) => inner.is_plain(left),
            Type::Tuple { items, .. } => items.iter().all(|item| item.is_plain(left)),
            Type::Union(parts) | Type::Both(parts) => parts.iter().all(|part| part.is_plain(left)),
            Type::Object(object) => object.fields.iter().all(|field| {
                *left = left.saturating_sub(1);
                *left > 0 && field.notes.is_empty() && field.r#type.is_plain(left)
            }),
            _ => true,
        }
    }
}
