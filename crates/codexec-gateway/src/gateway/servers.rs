//! The list of servers, which code reads before it asks one for its tools.

use codexec_types::{CallError, Json, ToolFilter, to_identifier};
use serde_json::{Map, Value, json};

use super::{Gateway, health::server_health};
use crate::upstream::Upstream;

/// The number of tools named to show what a server is for.
const NAMED_TOOLS: usize = 8;

impl Gateway {
    /// Returns what is known now. Starts no server and waits for none.
    pub(super) fn list_servers(&self, allowed: &ToolFilter) -> Result<Json, CallError> {
        let fleet = self.fleet();
        let seen = fleet.upstreams.iter().filter(|up| allowed.allows_server(up.name().as_str()));
        let servers = seen.map(|upstream| describe_server(upstream, allowed)).collect();
        self.to_bounded_json(&Value::Array(servers))
    }
}

fn describe_server(upstream: &Upstream, allowed: &ToolFilter) -> Value {
    let name = upstream.name().as_str();
    let mut about = Map::new();
    about.insert("name".to_owned(), name.into());
    about.insert("alias".to_owned(), to_identifier(name).into());
    about.insert("state".to_owned(), server_health(upstream).state_name().into());
    if let Some(listing) = upstream.listing() {
        let tools = listing.tools.iter().map(|tool| tool.name.as_str());
        let tools: Vec<&str> = tools.filter(|tool| allowed.check(name, tool).is_ok()).collect();
        let more = if tools.len() > NAMED_TOOLS { ", .." } else { "" };
        let named = tools.iter().take(NAMED_TOOLS).copied().collect::<Vec<_>>().join(", ");
        if !named.is_empty() {
            about.insert("description".to_owned(), json!(format!("{named}{more}")));
        }
        about.insert("tools".to_owned(), tools.len().into());
    }
    Value::Object(about)
}
