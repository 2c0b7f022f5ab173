//! THREAT[UP-2]: `tools/list` of an untrusted server. Pages, tools and bytes are bounded, and an
//! invalid tool affects only itself.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use codexec_files::hash_json;
use codexec_mcp_config::ServerOptions;
use codexec_types::{clean_line, cut_text, find_nearest_names, to_identifier};
use rmcp::model::{ClientRequest, CustomRequest};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{UpstreamError, connection::UpstreamConnection};
use crate::{tool::Tool, trust::HoldReason};

const PAGES: usize = 100;
const TOOLS: usize = 5_000;
const RAW_BYTES: usize = 64 << 20;
/// The longest TTL of a list, and the default.
pub(crate) const MAX_LIST_TTL: Duration = Duration::from_secs(24 * 60 * 60);
const MIN_LIST_TTL: Duration = Duration::from_secs(1);
/// The limit on reported problems.
const PROBLEMS: usize = 20;

/// The tools of one server, in its own order.
#[derive(Debug, Default)]
pub(crate) struct ToolListing {
    /// The usable tools.
    pub(crate) tools: Vec<Arc<Tool>>,
    /// The other tools, with the reason.
    withheld: Vec<(Arc<Tool>, WithheldReason)>,
    /// The hash of every definition, by name.
    digests: HashMap<String, String>,
    by_name: HashMap<String, ListIndex>,
    by_alias: HashMap<String, Vec<ListIndex>>,
    /// Dropped and repaired parts, one sentence each.
    pub(crate) problems: Vec<String>,
    /// The TTL that the server gave for the list.
    pub(crate) ttl: Option<Duration>,
    raw_bytes: usize,
}

/// Why a listed tool cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WithheldReason {
    /// The tool waits for approval.
    Held(HoldReason),
    /// The tool is switched off in the settings.
    SwitchedOff,
}

/// The result of resolving a name.
#[derive(Debug)]
pub(crate) enum ToolLookup<'a> {
    Found(&'a Arc<Tool>),
    Withheld(&'a Tool, WithheldReason),
    /// Several tools have this alias; these are their own names.
    Ambiguous(Vec<&'a str>),
    Missing,
}

/// A position in `tools` or in `withheld`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ListIndex {
    Usable(usize),
    Withheld(usize),
}

impl ToolListing {
    /// Returns the list with held and switched-off tools withheld.
    pub(crate) fn visible_to_user(
        &self,
        narrow: &ServerOptions,
        held: &BTreeMap<String, HoldReason>,
    ) -> ToolListing {
        let mut visible = ToolListing {
            problems: self.problems.clone(),
            digests: self.digests.clone(),
            ttl: self.ttl,
            ..ToolListing::default()
        };
        for (tool, _) in self.all_tools() {
            let withheld = if narrow.is_tool_enabled(&tool.name) {
                held.get(&tool.name).map(|why| WithheldReason::Held(*why))
            } else {
                Some(WithheldReason::SwitchedOff)
            };
            visible.insert(tool.clone(), withheld);
        }
        visible
    }

    /// Returns every listed tool, with the hash of its definition.
    pub(crate) fn all_tools(&self) -> impl Iterator<Item = (&Arc<Tool>, &str)> {
        let all = self.tools.iter().chain(self.withheld.iter().map(|(tool, _)| tool));
        all.map(|tool| (tool, self.digest(&tool.name)))
    }

    /// Returns the tools that wait for approval.
    pub(crate) fn held_tools(&self) -> impl Iterator<Item = (&Arc<Tool>, &str)> {
        let is_held =
            |(_, why): &&(Arc<Tool>, WithheldReason)| matches!(why, WithheldReason::Held(_));
        self.withheld.iter().filter(is_held).map(|(tool, _)| (tool, self.digest(&tool.name)))
    }

    /// Returns the hash of this tool's definition, or an empty string.
    pub(crate) fn digest(&self, name: &str) -> &str {
        self.digests.get(name).map_or("", String::as_str)
    }

    /// Returns the usable tool with this name or alias.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Tool>> {
        match self.lookup(name) {
            ToolLookup::Found(tool) => Some(tool),
            ToolLookup::Withheld(..) | ToolLookup::Ambiguous(_) | ToolLookup::Missing => None,
        }
    }

    /// Returns true if a tool has exactly this name, usable or not.
    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Resolves a name, or else an alias. The name of a withheld tool never resolves to another
    /// tool.
    pub(crate) fn lookup(&self, name: &str) -> ToolLookup<'_> {
        if let Some(index) = self.by_name.get(name) {
            return self.lookup_at(*index);
        }
        let all = self.by_alias.get(&to_identifier(name)).map_or(&[][..], Vec::as_slice);
        // Switched-off tools do not make an alias ambiguous.
        let is_off = |index: &&ListIndex| {
            matches!(self.lookup_at(**index), ToolLookup::Withheld(_, WithheldReason::SwitchedOff))
        };
        let mut indexes: Vec<&ListIndex> = all.iter().filter(|index| !is_off(index)).collect();
        if indexes.is_empty() {
            indexes = all.iter().collect();
        }
        let held = indexes.iter().find(|index| matches!(index, ListIndex::Withheld(_)));
        match (held, indexes.as_slice()) {
            (Some(held), _) => self.lookup_at(**held),
            (None, []) => ToolLookup::Missing,
            (None, [one]) => self.lookup_at(**one),
            (None, several) => ToolLookup::Ambiguous(
                several.iter().filter_map(|index| self.name_at(**index)).collect(),
            ),
        }
    }

    pub(crate) fn nearest(&self, name: &str) -> Vec<&str> {
        find_nearest_names(name, self.tools.iter().map(|tool| tool.name.as_str()), 3)
    }

    /// Adds one page. Returns false if the list is full.
    pub(crate) fn add_page(&mut self, page: &Value) -> bool {
        if let Some(ttl) = page.get("ttlMs").and_then(Value::as_u64) {
            self.ttl = Some(Duration::from_millis(ttl).clamp(MIN_LIST_TTL, MAX_LIST_TTL));
        }
        let tools = page.get("tools").and_then(Value::as_array);
        if tools.is_none() {
            self.add_problem("a page of its list has no `tools`");
        }
        for raw in tools.into_iter().flatten() {
            if self.tools.len() >= TOOLS || self.raw_bytes >= RAW_BYTES {
                self.add_problem(&format!("it lists more than {TOOLS} tools or {RAW_BYTES} bytes"));
                return false;
            }
            match Tool::read(raw) {
                Ok(tool) => self.add(tool, hash_json(raw)),
                Err(err) => self.add_problem(&err.to_string()),
            }
        }
        true
    }

    /// Adds a tool whose definition has this hash.
    pub(crate) fn add(&mut self, tool: Tool, digest: String) {
        if self.by_name.contains_key(&tool.name) {
            self.add_problem(&format!("tool {:?} is listed twice; the first counts", tool.name));
            return;
        }
        self.raw_bytes += tool.raw.text().len();
        self.digests.insert(tool.name.clone(), digest);
        self.insert(Arc::new(tool), None);
    }

    fn insert(&mut self, tool: Arc<Tool>, withheld: Option<WithheldReason>) {
        let index = match withheld {
            None => ListIndex::Usable(self.tools.len()),
            Some(_) => ListIndex::Withheld(self.withheld.len()),
        };
        self.by_name.insert(tool.name.clone(), index);
        self.by_alias.entry(to_identifier(&tool.name)).or_default().push(index);
        match withheld {
            None => self.tools.push(tool),
            Some(why) => self.withheld.push((tool, why)),
        }
    }

    fn lookup_at(&self, index: ListIndex) -> ToolLookup<'_> {
        match index {
            ListIndex::Usable(at) => {
                self.tools.get(at).map_or(ToolLookup::Missing, ToolLookup::Found)
            }
            ListIndex::Withheld(at) => {
                let withheld = self.withheld.get(at);
                withheld.map_or(ToolLookup::Missing, |(tool, why)| ToolLookup::Withheld(tool, *why))
            }
        }
    }

    fn name_at(&self, index: ListIndex) -> Option<&str> {
        match self.lookup_at(index) {
            ToolLookup::Found(tool) => Some(&tool.name),
            ToolLookup::Withheld(tool, _) => Some(&tool.name),
            ToolLookup::Ambiguous(_) | ToolLookup::Missing => None,
        }
    }

    fn add_problem(&mut self, what: &str) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(cut_text(&clean_line(what), 300));
        }
    }
}

pub(super) async fn fetch_list(
    connection: &UpstreamConnection,
    limit: Duration,
) -> Result<ToolListing, UpstreamError> {
    let deadline = Instant::now() + limit;
    let mut listing = ToolListing::default();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..PAGES {
        let params = cursor.as_ref().map(|cursor| json!({ "cursor": cursor }));
        let request = ClientRequest::CustomRequest(CustomRequest::new("tools/list", params));
        let left = deadline.saturating_duration_since(Instant::now());
        let page = match connection.request(request, left).await {
            Ok(page) => page,
            // Tools are optional for a server.
            Err(UpstreamError::NoSuchMethod) => return Ok(listing),
            // Tools received before the failure are kept.
            Err(err) if !listing.tools.is_empty() && !connection.is_closed() => {
                listing.add_problem(&format!("its list is incomplete: {err}"));
                return Ok(listing);
            }
            Err(err) => return Err(err),
        };
        if !listing.add_page(&page) {
            return Ok(listing);
        }
        let next = page.get("nextCursor").and_then(Value::as_str).filter(|next| !next.is_empty());
        match next {
            Some(next) if cursors.insert(next.to_owned()) => cursor = Some(next.to_owned()),
            Some(_) | None => return Ok(listing),
        }
    }
    listing.add_problem(&format!("its list has more than {PAGES} pages; the rest was left out"));
    Ok(listing)
}

#[cfg(test)]
mod tests;
