//! Texts for the author of a guest, in the guest's own language.

mod api;

use serde_json::Value;

use crate::{Voice, catalogue::CatalogueEntry, gateway::ServerHealth, gateway::ServerState};

/// How to call tools, and which servers there are.
pub(crate) fn overview<'a>(
    voice: Voice,
    servers: impl Iterator<Item = (&'a ServerHealth, usize)>,
) -> String {
    let mut text = format!("{}\nServers:\n", api::text(voice));
    for (server, tools) in servers {
        let line = match server.state {
            ServerState::Ready => format!("  {} ({tools} tools)\n", server.name),
            state => format!("  {} ({tools} tools known, {})\n", server.name, state.name()),
        };
        text.push_str(&line);
    }
    text
}

/// Every tool of one server, a line each.
pub(crate) fn server(
    voice: Voice,
    name: &str,
    entries: &[(&CatalogueEntry, Option<Value>)],
) -> String {
    let mut text = format!("{name}: {} tools\n", entries.len());
    let mark = match voice {
        Voice::TypeScript => "//",
        Voice::Python | Voice::Bash => "#",
    };
    for (entry, observed) in entries {
        let summary = entry.tool.summary();
        let comment =
            if summary.is_empty() { String::new() } else { format!("  {mark} {summary}") };
        let signature = entry.tool.signature(voice, entry.server.as_str(), observed.as_ref());
        text.push_str(&format!("  {signature}{comment}\n"));
    }
    text
}

/// One tool: what it does in its own words, and its declaration.
pub(crate) fn tool(voice: Voice, entry: &CatalogueEntry, observed: Option<&Value>) -> String {
    let tool = &entry.tool;
    let declaration =
        tool.types(observed).declaration(voice, entry.server.as_str(), &tool.name, "");
    let description = tool.description.trim();
    let words = if description.is_empty() { String::new() } else { format!("{description}\n") };
    format!("{}\n{words}\n{declaration}", entry.dotted_name())
}
