//! Which fields and items of a value some part of a schema has looked at, for `unevaluated...`.

use std::collections::HashSet;

/// Fields by name, items by their index.
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
