//! The definitions of the compact tools. Constant, in a fixed order, and small, because every agent
//! pays for them in every conversation.

use std::borrow::Cow;
use std::sync::Arc;

use codexec_types::{Language, ToolKind};
use rmcp::model::{MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Returns `execute_code`, `search_tools`, `health`.
pub(super) fn compact() -> Vec<Tool> {
    vec![execute_code(), search_tools(), health()]
}

fn execute_code() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "language": {"enum": Language::ALL.map(Language::name)},
            "script": {"type": "string", "description": "a saved one"},
            "session": {"type": "string", "description": "a name; keeps state"},
            "input": {"description": "any JSON, `input` in the code"},
            "working_dir": {"type": "string", "description": "whole path"},
            "timeout_ms": {"type": "integer"},
            "allowed_tools": {
                "type": "array",
                "items": {"type": "string"},
                "description": "[\"github.*\"]; [] denies all",
            },
            "allowed_servers": {"type": "array", "items": {"type": "string"}},
            "max_tool_calls": {"type": "integer"},
        },
    });
    let description = "Run code in a sandbox (no network) that can call every MCP tool: \
        `await tools.server.tool({..})`, `searchTools(query)`, `getToolSchema(name)`, `help()`; \
        Python the same in snake_case, Bash `mcp server tool --arg x`. The result is the last \
        expression (JS: or `return`), what is printed, files, figures. \
        Do loops and filtering here.";
    let annotations = ToolAnnotations::with_title("Run code").destructive(true).open_world(true);
    tool("execute_code", description, schema, annotations)
}

fn search_tools() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "description": "default 10"},
            "detail": {"enum": ["names", "summary", "full"]},
            "server": {"type": "string"},
            "kind": {"enum": ToolKind::NARROW.map(|(name, _)| name)},
        },
        "required": ["query"],
    });
    let description = "Find tools for code, best first.";
    tool(
        "search_tools",
        description,
        schema,
        ToolAnnotations::with_title("Search tools").read_only(true).open_world(false),
    )
}

fn health() -> Tool {
    let schema = json!({"type": "object"});
    let description = "Sandbox, servers and load.";
    let annotations = ToolAnnotations::with_title("Health").read_only(true).open_world(false);
    tool("health", description, schema, annotations)
}

/// Builds a tool. Without `anthropic/alwaysLoad`, Claude Code hides the few tools behind its
/// search.
pub fn tool(
    name: impl Into<Cow<'static, str>>,
    description: impl Into<Cow<'static, str>>,
    schema: Value,
    annotations: ToolAnnotations,
) -> Tool {
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => serde_json::Map::new(),
    };
    let mut meta = MetaObject::default();
    meta.0.insert("anthropic/alwaysLoad".to_owned(), Value::Bool(true));
    let mut tool = Tool::new(name, description, Arc::new(schema)).with_annotations(annotations);
    tool.meta = Some(meta);
    tool
}

#[cfg(test)]
mod tests;
