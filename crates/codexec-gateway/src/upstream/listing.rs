//! THREAT[UP-2]: `tools/list` of an untrusted server. Pages, tools and bytes are bounded, and an
//! invalid tool affects only itself.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use codexec_types::{alias, nearest};
use rmcp::model::{ClientRequest, CustomRequest};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{UpstreamError, connection::Connection};
use crate::{
    Narrow,
    clean::{clean_line, cut},
    tool::Tool,
    trust::{Why, digest},
};

const PAGES: usize = 100;
const TOOLS: usize = 5_000;
const RAW_BYTES: usize = 64 << 20;
/// The longest TTL of a list, and the default.
pub(crate) const LIFE: Duration = Duration::from_secs(24 * 60 * 60);
const LIFE_MIN: Duration = Duration::from_secs(1);
/// The limit on reported problems.
const PROBLEMS: usize = 20;

/// The tools of one server, in its own order.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// The usable tools.
    pub(crate) tools: Vec<Arc<Tool>>,
    /// The other tools, with the reason.
    kept_back: Vec<(Arc<Tool>, KeptBack)>,
    /// The hash of every definition, by name.
    digests: HashMap<String, String>,
    by_name: HashMap<String, Place>,
    by_alias: HashMap<String, Vec<Place>>,
    /// Dropped and repaired parts, one sentence each.
    pub(crate) problems: Vec<String>,
    /// The TTL that the server gave for the list.
    pub(crate) life: Option<Duration>,
    raw_bytes: usize,
}

/// Why a listed tool cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptBack {
    /// The tool waits for approval.
    Held(Why),
    /// The tool is switched off in the settings.
    SwitchedOff,
}

/// The result of resolving a name.
#[derive(Debug)]
pub(crate) enum Lookup<'a> {
    Found(&'a Arc<Tool>),
    KeptBack(&'a Tool, KeptBack),
    /// Several tools have this alias; these are their own names.
    Several(Vec<&'a str>),
    Nothing,
}

/// A position in `tools` or in `withheld`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Tool(usize),
    KeptBack(usize),
}

impl Listing {
    /// Returns the list with held and switched-off tools withheld.
    pub(crate) fn seen_by_user(&self, narrow: &Narrow, held: &BTreeMap<String, Why>) -> Listing {
        let mut seen = Listing {
            problems: self.problems.clone(),
            digests: self.digests.clone(),
            life: self.life,
            ..Listing::default()
        };
        for (tool, _) in self.listed() {
            let kept_back = if narrow.has(&tool.name) {
                held.get(&tool.name).map(|why| KeptBack::Held(*why))
            } else {
                Some(KeptBack::SwitchedOff)
            };
            seen.place(tool.clone(), kept_back);
        }
        seen
    }

    /// Returns every listed tool, with the hash of its definition.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&Arc<Tool>, &str)> {
        let all = self.tools.iter().chain(self.kept_back.iter().map(|(tool, _)| tool));
        all.map(|tool| (tool, self.digest(&tool.name)))
    }

    /// Returns the tools that wait for approval.
    pub(crate) fn held_tools(&self) -> impl Iterator<Item = (&Arc<Tool>, &str)> {
        let is_held = |(_, why): &&(Arc<Tool>, KeptBack)| matches!(why, KeptBack::Held(_));
        self.kept_back.iter().filter(is_held).map(|(tool, _)| (tool, self.digest(&tool.name)))
    }

    /// Returns the hash of this tool's definition, or an empty string.
    pub(crate) fn digest(&self, name: &str) -> &str {
        self.digests.get(name).map_or("", String::as_str)
    }

    /// Returns the usable tool with this name or alias.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Tool>> {
        match self.lookup(name) {
            Lookup::Found(tool) => Some(tool),
            Lookup::KeptBack(..) | Lookup::Several(_) | Lookup::Nothing => None,
        }
    }

    /// Returns true if a tool has exactly this name, usable or not.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Resolves a name, or else an alias. The name of a withheld tool never resolves to another
    /// tool.
    pub(crate) fn lookup(&self, name: &str) -> Lookup<'_> {
        if let Some(place) = self.by_name.get(name) {
            return self.at(*place);
        }
        let all = self.by_alias.get(&alias(name)).map_or(&[][..], Vec::as_slice);
        // Switched-off tools do not make an alias ambiguous.
        let is_off =
            |place: &&Place| matches!(self.at(**place), Lookup::KeptBack(_, KeptBack::SwitchedOff));
        let mut places: Vec<&Place> = all.iter().filter(|place| !is_off(place)).collect();
        if places.is_empty() {
            places = all.iter().collect();
        }
        let held = places.iter().find(|place| matches!(place, Place::KeptBack(_)));
        match (held, places.as_slice()) {
            (Some(held), _) => self.at(**held),
            (None, []) => Lookup::Nothing,
            (None, [one]) => self.at(**one),
            (None, several) => {
                Lookup::Several(several.iter().filter_map(|place| self.name_at(**place)).collect())
            }
        }
    }

    pub(crate) fn nearest(&self, name: &str) -> Vec<&str> {
        nearest(name, self.tools.iter().map(|tool| tool.name.as_str()), 3)
    }

    /// Adds one page. Returns false if the list is full.
    pub(crate) fn add_page(&mut self, page: &Value) -> bool {
        if let Some(life) = page.get("ttlMs").and_then(Value::as_u64) {
            self.life = Some(Duration::from_millis(life).clamp(LIFE_MIN, LIFE));
        }
        let tools = page.get("tools").and_then(Value::as_array);
        if tools.is_none() {
            self.problem("a page of its list has no `tools`");
        }
        for raw in tools.into_iter().flatten() {
            if self.tools.len() >= TOOLS || self.raw_bytes >= RAW_BYTES {
                self.problem(&format!("it lists more than {TOOLS} tools or {RAW_BYTES} bytes"));
                return false;
            }
            match Tool::read(raw) {
                Ok(tool) => self.add(tool, digest(raw)),
                Err(err) => self.problem(&err.to_string()),
            }
        }
        true
    }

    /// Adds a tool whose definition has this hash.
    pub(crate) fn add(&mut self, tool: Tool, digest: String) {
        if self.by_name.contains_key(&tool.name) {
            self.problem(&format!("tool {:?} is listed twice; the first counts", tool.name));
            return;
        }
        self.raw_bytes += tool.raw.text().len();
        self.digests.insert(tool.name.clone(), digest);
        self.place(Arc::new(tool), None);
    }

    fn place(&mut self, tool: Arc<Tool>, kept_back: Option<KeptBack>) {
        let place = match kept_back {
            None => Place::Tool(self.tools.len()),
            Some(_) => Place::KeptBack(self.kept_back.len()),
        };
        self.by_name.insert(tool.name.clone(), place);
        self.by_alias.entry(alias(&tool.name)).or_default().push(place);
        match kept_back {
            None => self.tools.push(tool),
            Some(why) => self.kept_back.push((tool, why)),
        }
    }

    fn at(&self, place: Place) -> Lookup<'_> {
        match place {
            Place::Tool(at) => self.tools.get(at).map_or(Lookup::Nothing, Lookup::Found),
            Place::KeptBack(at) => {
                let kept_back = self.kept_back.get(at);
                kept_back.map_or(Lookup::Nothing, |(tool, why)| Lookup::KeptBack(tool, *why))
            }
        }
    }

    fn name_at(&self, place: Place) -> Option<&str> {
        match self.at(place) {
            Lookup::Found(tool) => Some(&tool.name),
            Lookup::KeptBack(tool, _) => Some(&tool.name),
            Lookup::Several(_) | Lookup::Nothing => None,
        }
    }

    fn problem(&mut self, what: &str) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(cut(&clean_line(what), 300));
        }
    }
}

pub(super) async fn list(
    connection: &Connection,
    limit: Duration,
) -> Result<Listing, UpstreamError> {
    let deadline = Instant::now() + limit;
    let mut listing = Listing::default();
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
            Err(err) if !listing.tools.is_empty() && !connection.is_gone() => {
                listing.problem(&format!("its list is cut short: {err}"));
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
    listing.problem(&format!("its list has more than {PAGES} pages; the rest was left out"));
    Ok(listing)
}

#[cfg(test)]
mod tests;
