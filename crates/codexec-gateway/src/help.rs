//! Help texts for guest code, in the guest's language.

mod api;

use codexec_typings::TypingsLanguage;
use serde_json::Value;

use crate::{catalogue::CatalogueEntry, gateway::ServerHealth, gateway::ServerState};

/// Describes how to call tools, and lists the servers.
pub(crate) fn describe_servers<'a>(
    voice: TypingsLanguage,
    servers: impl Iterator<Item = (&'a ServerHealth, usize)>,
) -> String {
    let mut text = format!("{}\nServers:\n", api::describe_api(voice));
    for (server, tools) in servers {
        let line = match server.state {
            ServerState::Ready => format!("  {} ({tools} tools)\n", server.name),
            state => format!("  {} ({tools} tools known, {})\n", server.name, state.name()),
        };
        text.push_str(&line);
    }
    text
}

/// Lists every tool of one server, one per line.
pub(crate) fn describe_server(
    voice: TypingsLanguage,
    name: &str,
    entries: &[(&CatalogueEntry, Option<Value>)],
) -> String {
    let mut text = format!("{name}: {} tools\n", entries.len());
    let mark = match voice {
        TypingsLanguage::TypeScript => "//",
        TypingsLanguage::Python | TypingsLanguage::Bash => "#",
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

/// Describes one tool with its description and declaration.
pub(crate) fn describe_tool(
    voice: TypingsLanguage,
    entry: &CatalogueEntry,
    observed: Option<&Value>,
) -> String {
    let tool = &entry.tool;
    let declaration =
        tool.types(observed).declaration(voice, entry.server.as_str(), &tool.name, "");
    let description = tool.description.trim();
    let description =
        if description.is_empty() { String::new() } else { format!("{description}\n") };
    format!("{}\n{description}\n{declaration}", entry.dotted_name())
}
