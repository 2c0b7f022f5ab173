use codexec_types::{ServerName, ToolFilter};
use serde_json::Value;

use crate::{
    catalogue::{Catalogue, CatalogueEntry},
    tool::Tool,
};

/// Tool search over raw definitions, without any server. Used to measure search quality.
pub struct ToolFinder {
    catalogue: Catalogue,
}

impl ToolFinder {
    /// Skips invalid definitions, as a catalogue does.
    pub fn new<'a>(definitions: impl IntoIterator<Item = (ServerName, &'a Value)>) -> ToolFinder {
        let entries = definitions.into_iter().filter_map(|(server, definition)| {
            Some(CatalogueEntry { server, tool: Tool::read(definition).ok()?.into() })
        });
        ToolFinder { catalogue: Catalogue::from_entries(entries.collect()) }
    }

    /// Returns the `server.tool` names of the best matches, best first.
    pub fn find(&self, query: &str, limit: usize) -> Vec<String> {
        let all = ToolFilter::all();
        let found = self.catalogue.search(query, &all);
        found.take(limit).map(CatalogueEntry::dotted_name).collect()
    }
}
