//! Scripts that are exposed as tools.

use codexec_scripts::ScriptMeta;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::json;

use super::super::tool::tool;

const PREFIX: &str = "script_";
/// Maximum length of a tool name that clients accept.
const MAX_NAME_BYTES: usize = 64;
/// As many as an agent can look through.
const MAX_TOOLS: usize = 50;

/// Returns the tools, each with the parameters of its script as arguments.
pub(in crate::mcp) fn tools(scripts: &[ScriptMeta]) -> Vec<Tool> {
    let tools = scripts.iter().take(MAX_TOOLS).map(|meta| {
        let parameters = meta.parameters.clone().unwrap_or_else(|| json!({"type": "object"}));
        let annotations = ToolAnnotations::with_title(meta.name.clone()).open_world(true);
        tool(tool_name(meta), meta.description.clone(), parameters, annotations)
    });
    tools.collect()
}

pub(in crate::mcp) fn is_tool(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Finds the script with this tool name.
pub(super) fn find<'a>(scripts: &'a [ScriptMeta], name: &str) -> Option<&'a ScriptMeta> {
    scripts.iter().take(MAX_TOOLS).find(|meta| tool_name(meta) == name)
}

fn tool_name(meta: &ScriptMeta) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = meta.name.chars().map(plain).collect();
    let mut name = format!("{PREFIX}{name}");
    name.truncate(MAX_NAME_BYTES);
    name
}
