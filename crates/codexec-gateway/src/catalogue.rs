//! All tools of all servers, in a fixed order, and the names they go by.

use std::sync::Arc;

use codexec_types::{ServerName, ToolFilter, alias};

use crate::{
    search::{ToolDocument, ToolIndex},
    tool::Tool,
    upstream::Listing,
};

/// A snapshot. Made again when a server's list changes.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    entries: Vec<Entry>,
    index: ToolIndex,
    /// What it was made from, to see when it is out of date.
    listings: Vec<Option<Arc<Listing>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) server: ServerName,
    pub(crate) tool: Arc<Tool>,
}

impl Catalogue {
    /// In the order of the configuration, then in each server's own.
    pub(crate) fn new(servers: &[ServerName], listings: Vec<Option<Arc<Listing>>>) -> Catalogue {
        let mut entries = Vec::new();
        for (server, listing) in servers.iter().zip(&listings) {
            for tool in listing.iter().flat_map(|listing| &listing.tools) {
                entries.push(Entry { server: server.clone(), tool: tool.clone() });
            }
        }
        Catalogue { listings, ..Catalogue::of(entries) }
    }

    /// Without saying what it was made from.
    pub(crate) fn of(entries: Vec<Entry>) -> Catalogue {
        let documents: Vec<ToolDocument<'_>> = entries.iter().map(document).collect();
        let index = ToolIndex::new(&documents);
        drop(documents);
        Catalogue { entries, index, listings: Vec::new() }
    }

    pub(crate) fn is_made_from(&self, listings: &[Option<Arc<Listing>>]) -> bool {
        let is_same = |pair: (&Option<Arc<Listing>>, &Option<Arc<Listing>>)| match pair {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.listings.len() == listings.len() && self.listings.iter().zip(listings).all(is_same)
    }

    /// What `allowed` lets through.
    pub(crate) fn all(&self, allowed: &ToolFilter) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_allowed(allowed))
    }

    /// The same, best match first.
    pub(crate) fn search(&self, query: &str, allowed: &ToolFilter) -> impl Iterator<Item = &Entry> {
        let ranked = self.index.rank(query);
        ranked
            .into_iter()
            .filter_map(|at| self.entries.get(at))
            .filter(|entry| entry.is_allowed(allowed))
    }
}

impl Entry {
    pub(crate) fn is_allowed(&self, allowed: &ToolFilter) -> bool {
        allowed.check(self.server.as_str(), &self.tool.name).is_ok()
    }

    pub(crate) fn dotted_name(&self) -> String {
        format!("{}.{}", self.server, self.tool.name)
    }
}

fn document(entry: &Entry) -> ToolDocument<'_> {
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
pub(crate) struct Pair<'a> {
    pub(crate) server: ServerName,
    pub(crate) tool: &'a str,
    /// The server is called by its own name, not by its alias.
    pub(crate) is_exact: bool,
}

impl Pair<'_> {
    pub(crate) fn dotted_name(&self) -> String {
        format!("{}.{}", self.server, self.tool)
    }
}

/// The server of this name, else all of this alias.
pub(crate) fn servers_named<'a>(name: &str, servers: &'a [ServerName]) -> Vec<&'a ServerName> {
    match servers.iter().find(|server| server.as_str() == name) {
        Some(exact) => vec![exact],
        None => servers.iter().filter(|server| alias(server.as_str()) == name).collect(),
    }
}

/// The same where there is only one.
pub(crate) fn find_server<'a>(name: &str, servers: &'a [ServerName]) -> Option<&'a ServerName> {
    match servers_named(name, servers).as_slice() {
        [server] => Some(server),
        _ => None,
    }
}

/// The pairs that a joined name can stand for, likeliest first: `mcp__server__tool`,
/// `server.tool`, `server:tool`, `server/tool`, `server__tool`. A server whose own name has `__`
/// in it is known by being known.
pub(crate) fn pairs<'a>(name: &'a str, servers: &[ServerName]) -> Vec<Pair<'a>> {
    let mut found: Vec<(usize, Pair<'a>)> = Vec::new();
    for body in [name.strip_prefix("mcp__"), Some(name)].into_iter().flatten() {
        for server in servers {
            let (own, alias) = (server.as_str(), alias(server.as_str()));
            let spellings = [Some(own), Some(alias.as_str()).filter(|alias| *alias != own)];
            for spelling in spellings.into_iter().flatten() {
                let tool = body.strip_prefix(spelling).and_then(|rest| {
                    ["__", ".", ":", "/"].iter().find_map(|joint| rest.strip_prefix(joint))
                });
                if let Some(tool) = tool.filter(|tool| !tool.is_empty()) {
                    let pair = Pair { server: server.clone(), tool, is_exact: spelling == own };
                    found.push((spelling.len(), pair));
                }
            }
        }
    }
    // Of `a` and `a__b`, the longer name is the likelier meant.
    found.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    found.into_iter().map(|(_, pair)| pair).collect()
}

#[cfg(test)]
mod tests;
