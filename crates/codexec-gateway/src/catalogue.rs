//! The tools of all servers in a fixed order, and the names they can be called by.

use std::sync::Arc;

use codexec_tool_search::{ToolDocument, ToolIndex};
use codexec_types::{ServerName, ToolFilter, to_identifier};

use crate::{tool::Tool, upstream::ToolListing};

/// A snapshot of all tools, rebuilt when a server's list changes.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    entries: Vec<CatalogueEntry>,
    index: ToolIndex,
    /// The lists this was built from, to detect when it is out of date.
    listings: Vec<Option<Arc<ToolListing>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct CatalogueEntry {
    pub(crate) server: ServerName,
    pub(crate) tool: Arc<Tool>,
}

impl Catalogue {
    /// Orders tools by the configured order of servers, then by each server's own order.
    pub(crate) fn new(
        servers: &[ServerName],
        listings: Vec<Option<Arc<ToolListing>>>,
    ) -> Catalogue {
        let mut entries = Vec::new();
        for (server, listing) in servers.iter().zip(&listings) {
            for tool in listing.iter().flat_map(|listing| &listing.tools) {
                entries.push(CatalogueEntry { server: server.clone(), tool: tool.clone() });
            }
        }
        Catalogue { listings, ..Catalogue::from_entries(entries) }
    }

    /// Builds a catalogue that is never out of date, because it records no lists.
    pub(crate) fn from_entries(entries: Vec<CatalogueEntry>) -> Catalogue {
        let documents: Vec<ToolDocument<'_>> = entries.iter().map(search_document).collect();
        let index = ToolIndex::new(&documents);
        drop(documents);
        Catalogue { entries, index, listings: Vec::new() }
    }

    pub(crate) fn is_made_from(&self, listings: &[Option<Arc<ToolListing>>]) -> bool {
        let is_same = |pair: (&Option<Arc<ToolListing>>, &Option<Arc<ToolListing>>)| match pair {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.listings.len() == listings.len() && self.listings.iter().zip(listings).all(is_same)
    }

    /// Returns the entries that `allowed` permits.
    pub(crate) fn all(&self, allowed: &ToolFilter) -> impl Iterator<Item = &CatalogueEntry> {
        self.entries.iter().filter(|entry| entry.is_allowed(allowed))
    }

    /// Returns the entries that `allowed` permits with their scores, best match first.
    pub(crate) fn search(&self, query: &str, allowed: &ToolFilter) -> Vec<(&CatalogueEntry, f32)> {
        let ranked = self.index.rank_scored(query).into_iter();
        ranked
            .filter_map(|(at, score)| Some((self.entries.get(at)?, score)))
            .filter(|(entry, _)| entry.is_allowed(allowed))
            .collect()
    }
}

impl CatalogueEntry {
    pub(crate) fn is_allowed(&self, allowed: &ToolFilter) -> bool {
        allowed.check(self.server.as_str(), &self.tool.name).is_ok()
    }

    pub(crate) fn dotted_name(&self) -> String {
        format!("{}.{}", self.server, self.tool.name)
    }
}

fn search_document(entry: &CatalogueEntry) -> ToolDocument<'_> {
    let parameters = entry.tool.parameters.iter();
    let (names, texts): (Vec<&str>, Vec<&str>) =
        parameters.map(|(name, text)| (name.as_str(), text.as_str())).unzip();
    ToolDocument {
        server: entry.server.as_str(),
        name: &entry.tool.name,
        title: entry.tool.title.as_deref().unwrap_or_default(),
        description: &entry.tool.description,
        parameters: names.join(" "),
        parameter_texts: texts.join(" "),
    }
}

/// A server and a tool that a joined name can stand for.
#[derive(Debug, PartialEq)]
pub(crate) struct ServerTool<'a> {
    pub(crate) server: ServerName,
    pub(crate) tool: &'a str,
    /// True if the name used the server's own name, not its alias.
    pub(crate) is_exact: bool,
}

impl ServerTool<'_> {
    pub(crate) fn dotted_name(&self) -> String {
        format!("{}.{}", self.server, self.tool)
    }
}

/// Returns the server with this name, or else all servers with this alias.
pub(crate) fn find_servers<'a>(name: &str, servers: &'a [ServerName]) -> Vec<&'a ServerName> {
    match servers.iter().find(|server| server.as_str() == name) {
        Some(exact) => vec![exact],
        None => servers.iter().filter(|server| to_identifier(server.as_str()) == name).collect(),
    }
}

/// Returns the one server with this name or alias, or `None` if there are several.
pub(crate) fn find_server<'a>(name: &str, servers: &'a [ServerName]) -> Option<&'a ServerName> {
    match find_servers(name, servers).as_slice() {
        [server] => Some(server),
        _ => None,
    }
}

/// Splits a joined name into its possible server and tool pairs, likeliest first:
/// `mcp__server__tool`, `server.tool`, `server:tool`, `server/tool`, `server__tool`. Server names
/// that contain `__` are recognized because all server names are known.
pub(crate) fn split_name<'a>(name: &'a str, servers: &[ServerName]) -> Vec<ServerTool<'a>> {
    let mut candidates: Vec<(usize, ServerTool<'a>)> = Vec::new();
    for body in [name.strip_prefix("mcp__"), Some(name)].into_iter().flatten() {
        for server in servers {
            let (own, alias) = (server.as_str(), to_identifier(server.as_str()));
            let spellings = [Some(own), Some(alias.as_str()).filter(|alias| *alias != own)];
            for spelling in spellings.into_iter().flatten() {
                let tool = body.strip_prefix(spelling).and_then(|rest| {
                    ["__", ".", ":", "/"].iter().find_map(|joint| rest.strip_prefix(joint))
                });
                if let Some(tool) = tool.filter(|tool| !tool.is_empty()) {
                    let pair =
                        ServerTool { server: server.clone(), tool, is_exact: spelling == own };
                    candidates.push((spelling.len(), pair));
                }
            }
        }
    }
    // Of `a` and `a__b`, the longer name is likelier.
    candidates.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    candidates.into_iter().map(|(_, pair)| pair).collect()
}

#[cfg(test)]
mod tests;
