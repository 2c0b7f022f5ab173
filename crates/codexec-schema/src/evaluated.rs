//! The fields and items of a value that keywords have evaluated, for `unevaluatedProperties` and
//! `unevaluatedItems`.

use std::collections::HashSet;

/// Evaluated fields by name, and evaluated items by index.
#[derive(Debug, Default)]
pub(crate) struct Evaluated<'v> {
    pub(crate) has_all_fields: bool,
    pub(crate) fields: HashSet<&'v str>,
    pub(crate) has_all_items: bool,
    pub(crate) items: HashSet<usize>,
}

impl<'v> Evaluated<'v> {
    pub(crate) fn add(&mut self, other: Evaluated<'v>) {
        self.has_all_fields |= other.has_all_fields;
        self.has_all_items |= other.has_all_items;
        self.fields.extend(other.fields);
        self.items.extend(other.items);
    }
}
