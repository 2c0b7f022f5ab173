//! THREAT[UP-2]: `tools/list` of a server that may send anything: pages, tools and bytes are bounded, and a
//! bad tool costs itself only.

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
    trust::{HoldReason, digest},
};

const PAGES: usize = 100;
const TOOLS: usize = 5_000;
const RAW_BYTES: usize = 64 << 20;
/// How long a list holds of which its server says nothing, and at most.
pub(crate) const LIFE: Duration = Duration::from_secs(24 * 60 * 60);
const LIFE_MIN: Duration = Duration::from_secs(1);
/// Problems beyond these are only counted.
const PROBLEMS: usize = 20;

/// The tools of one server, in its own order.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Those that may be used.
    pub(crate) tools: Vec<Arc<Tool>>,
    /// Those that may not, and why.
    kept_back: Vec<(Arc<Tool>, KeptBack)>,
    /// The hash of every definition, by name.
    digests: HashMap<String, String>,
    by_name: HashMap<String, Place>,
    by_alias: HashMap<String, Vec<Place>>,
    /// What was dropped or repaired, in sentences.
    pub(crate) problems: Vec<String>,
    /// How long the server says that it holds.
    pub(crate) life: Option<Duration>,
    raw_bytes: usize,
}

/// Why a tool that is listed cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptBack {
    /// It waits for approval.
    Held(HoldReason),
    /// The settings say so.
    SwitchedOff,
}

/// What a name stands for.
#[derive(Debug)]
pub(crate) enum Lookup<'a> {
    Found(&'a Arc<Tool>),
    KeptBack(&'a Tool, KeptBack),
    /// Several tools go by this alias; each has a name of its own.
    Several(Vec<&'a str>),
    Nothing,
}

/// In `tools`, or in `kept_back`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Tool(usize),
    KeptBack(usize),
}

impl Listing {
    /// The same list as its user may see it.
    pub(crate) fn seen_by_user(
        &self,
        narrow: &Narrow,
        held: &BTreeMap<String, HoldReason>,
    ) -> Listing {
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

    /// Everything that the server lists, with the hash of each definition.
    pub(crate) fn listed(&self) -> impl Iterator<Item = (&Arc<Tool>, &str)> {
        let all = self.tools.iter().chain(self.kept_back.iter().map(|(tool, _)| tool));
        all.map(|tool| (tool, self.digest(&tool.name)))
    }

    /// What waits for approval.
    pub(crate) fn held_tools(&self) -> impl Iterator<Item = (&Arc<Tool>, &str)> {
        let is_held = |(_, why): &&(Arc<Tool>, KeptBack)| matches!(why, KeptBack::Held(_));
        self.kept_back.iter().filter(is_held).map(|(tool, _)| (tool, self.digest(&tool.name)))
    }

    /// The hash of the definition of this name; empty if there is none.
    pub(crate) fn digest(&self, name: &str) -> &str {
        self.digests.get(name).map_or("", String::as_str)
    }

    /// By its name, else by its alias.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Tool>> {
        match self.lookup(name) {
            Lookup::Found(tool) => Some(tool),
            Lookup::KeptBack(..) | Lookup::Several(_) | Lookup::Nothing => None,
        }
    }

    /// Whether a tool has exactly this name, be it one that can be used or not.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// By its name, else by its alias. A name that is kept back never falls to another tool.
    pub(crate) fn lookup(&self, name: &str) -> Lookup<'_> {
        if let Some(place) = self.by_name.get(name) {
            return self.at(*place);
        }
        let all = self.by_alias.get(&alias(name)).map_or(&[][..], Vec::as_slice);
        // What the user has switched off is nobody's rival.
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

    /// Takes one page; `false` when there is no room for more.
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

    /// Takes a tool whose definition has this hash.
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
            // A server without tools is a server.
            Err(UpstreamError::NoSuchMethod) => return Ok(listing),
            // What came before the failure is still good.
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
