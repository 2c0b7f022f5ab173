//! THREAT[UP-2]: `tools/list` of a server that may send anything: pages, tools and bytes are bounded, and a
//! bad tool costs itself only.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use codexec_types::{alias, nearest};
use rmcp::model::{ClientRequest, CustomRequest};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{UpstreamError, connection::Connection};
use crate::{
    clean::{clean_line, cut},
    tool::Tool,
};

const PAGES: usize = 100;
const TOOLS: usize = 5_000;
const RAW_BYTES: usize = 64 << 20;
/// Problems beyond these are only counted.
const PROBLEMS: usize = 20;

/// The tools of one server, in its own order.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<Arc<Tool>>,
    by_name: HashMap<String, usize>,
    by_alias: HashMap<String, usize>,
    /// What was dropped or repaired, in sentences.
    pub(crate) problems: Vec<String>,
    raw_bytes: usize,
}

impl Listing {
    /// By its name, else by its alias.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Tool>> {
        let at = self.by_name.get(name).or_else(|| self.by_alias.get(&alias(name)))?;
        self.tools.get(*at)
    }

    pub(crate) fn nearest(&self, name: &str) -> Vec<&str> {
        nearest(name, self.tools.iter().map(|tool| tool.name.as_str()), 3)
    }

    /// Takes one page; `false` when there is no room for more.
    pub(crate) fn add_page(&mut self, page: &Value) -> bool {
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
                Ok(tool) => self.add(tool),
                Err(err) => self.problem(&err.to_string()),
            }
        }
        true
    }

    fn add(&mut self, tool: Tool) {
        if self.by_name.contains_key(&tool.name) {
            self.problem(&format!("tool {:?} is listed twice; the first counts", tool.name));
            return;
        }
        self.raw_bytes += tool.raw.text().len();
        let at = self.tools.len();
        self.by_name.insert(tool.name.clone(), at);
        self.by_alias.entry(alias(&tool.name)).or_insert(at);
        self.tools.push(Arc::new(tool));
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
