//! The language-independent model of a schema's types.

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
    /// A string, a number, a boolean or null.
    Literal(Value),
    Array(Box<Type>),
    Tuple {
        items: Vec<Type>,
        rest: Option<Box<Type>>,
    },
    /// An object with arbitrary keys and values of one type.
    Map(Box<Type>),
    Object(ObjectType),
    /// Two or more types, none of which is a union.
    Union(Vec<Type>),
    /// Types that hold at once and could not be merged into one.
    Intersection(Vec<Type>),
    /// An index into [`SchemaShape::definitions`].
    Named(usize),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ObjectType {
    pub(super) fields: Vec<Field>,
    /// True if the schema has a type for further fields.
    pub(super) has_others: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) r#type: Type,
    pub(super) is_required: bool,
    pub(super) notes: Notes,
}

/// The description, limits and default of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Notes {
    /// The description, cleaned and on one line.
    pub(super) text: String,
    /// Limits and formats, each in a few words.
    pub(super) facts: Vec<String>,
    pub(super) default: Option<Value>,
}

/// The types of a schema.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SchemaShape {
    pub(super) root: Type,
    pub(super) definitions: Vec<TypeDefinition>,
    /// True if something was left out because of a limit.
    pub(super) is_cut: bool,
}

/// The target of a reference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TypeDefinition {
    pub(super) name: String,
    pub(super) r#type: Type,
    /// How often it is referenced.
    pub(super) uses: usize,
    pub(super) is_recursive: bool,
}

impl SchemaShape {
    pub(super) fn definition(&self, at: usize) -> Option<&TypeDefinition> {
        self.definitions.get(at)
    }

    /// Follows references to a type. Ends, because no definition is only a reference to itself.
    pub(super) fn resolve<'a>(&'a self, r#type: &'a Type) -> &'a Type {
        let mut found = r#type;
        while let Type::Named(at) = found {
            match self.definition(*at) {
                Some(definition) => found = &definition.r#type,
                None => return &Type::Unknown,
            }
        }
        found
    }

    /// Returns the fields of the root type. A field of a union is required if every choice
    /// requires it.
    pub(super) fn fields(&self) -> Option<Vec<Field>> {
        self.fields_of(&self.root, &mut { MAX_CHOICES })
    }

    /// Returns the fields of a type; `left` is the number of types that may still be visited.
    pub(super) fn fields_of(&self, r#type: &Type, left: &mut usize) -> Option<Vec<Field>> {
        *left = left.checked_sub(1)?;
        match self.resolve(r#type) {
            Type::Object(object) => Some(object.fields.clone()),
            Type::Map(values) if **values == Type::Unknown => Some(Vec::new()),
            Type::Union(choices) => {
                let choices = choices.iter().map(|choice| self.fields_of(choice, left));
                super::merge::any_of_fields(choices.collect::<Option<Vec<_>>>()?)
            }
            Type::Intersection(parts) => {
                let parts = parts.iter().map(|part| self.fields_of(part, left));
                Some(super::merge::all_of_fields(parts.collect::<Option<Vec<_>>>()?))
            }
            Type::Unknown => Some(Vec::new()),
            _ => None,
        }
    }
}

/// Limits the types that are visited, because choices can be nested without end.
pub(super) const MAX_CHOICES: usize = 100;

impl Notes {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.facts.is_empty() && self.default.is_none()
    }
}

impl Type {
    /// Returns true if nothing is nested in the type, so that it can be written at any depth.
    pub(super) fn is_leaf(&self) -> bool {
        match self {
            Type::Union(choices) => choices.iter().all(Type::is_leaf),
            Type::Array(_)
            | Type::Tuple { .. }
            | Type::Map(_)
            | Type::Object(_)
            | Type::Intersection(_)
            | Type::Named(_) => false,
            _ => true,
        }
    }

    /// Returns true if the type fits on one line: few fields, and no comments.
    pub(super) fn is_short(&self, left: &mut usize) -> bool {
        match self {
            Type::Array(inner) | Type::Map(inner) => inner.is_short(left),
            Type::Tuple { items, .. } => items.iter().all(|item| item.is_short(left)),
            Type::Union(parts) | Type::Intersection(parts) => {
                parts.iter().all(|part| part.is_short(left))
            }
            Type::Object(object) => object.fields.iter().all(|field| {
                *left = left.saturating_sub(1);
                *left > 0 && field.notes.is_empty() && field.r#type.is_short(left)
            }),
            _ => true,
        }
    }
}
