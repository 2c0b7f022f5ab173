//! Texts for the author of a guest.

use crate::{catalogue::Entry, gateway::ServerHealth, gateway::ServerState};

const API: &str = "\
Tools of MCP servers are functions here:
  await tools.SERVER.TOOL({..})              call a tool; tools[\"my-server\"] and tools.my_server both work
  await callMCPTool(\"mcp__SERVER__TOOL\", {..})  the same, by name
  call_tool(\"SERVER\", \"TOOL\", {..})          the same, gives {ok, result} or {ok: false, error}
  await searchTools(\"what it should do\", 10)  the best matching tools
  await discoverMCPTools({search: [\"word\"]})  every tool with one of the words
  await getToolSchema(\"SERVER.TOOL\")          one tool's schema and signature
  await resources.list(), resources.read(\"SERVER\", uri), prompts.list(), prompts.get(\"SERVER\", name, {..})
  help(\"SERVER\"), help(\"SERVER.TOOL\")         more about one
A result is the tool's structured content, else its text, parsed when it is JSON.
A failed call throws an error with code, server, tool and message.
Only the last expression or what you return goes back: filter and sum up here.";

/// How to call tools, and which servers there are.
pub(crate) fn overview<'a>(servers: impl Iterator<Item = (&'a ServerHealth, usize)>) -> String {
    let mut text = format!("{API}\nServers:\n");
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
pub(crate) fn server(name: &str, entries: &[&Entry]) -> String {
    let mut text = format!("{name}: {} tools\n", entries.len());
    for entry in entries {
        let summary = entry.tool.summary();
        let comment = if summary.is_empty() { String::new() } else { format!("  // {summary}") };
        text.push_str(&format!("  {}{comment}\n", entry.tool.signature()));
    }
    text
}

pub(crate) fn tool(entry: &Entry) -> String {
    let tool = &entry.tool;
    let mut text = format!("{}\n{}\n", entry.dotted_name(), tool.description.trim());
    for (name, description) in tool.parameters().filter(|(_, description)| !description.is_empty())
    {
        text.push_str(&format!("  {name}: {description}\n"));
    }
    text.push_str(tool.signature());
    text
}
