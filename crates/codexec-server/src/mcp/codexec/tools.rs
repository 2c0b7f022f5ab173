//! The definitions of the tools. Small, because every agent pays for them in every conversation.

use codexec_types::Language;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::super::tool::tool;

/// Returns the tools in the order of [`crate::own::TOOLS`].
pub(in crate::mcp) fn tools() -> Vec<Tool> {
    [running_tools(), session_tools(), script_tools(), log_tools()].concat()
}

fn running_tools() -> Vec<Tool> {
    vec![tool(
        "execute_code",
        "Run code once in a sandbox (no network) that can call every MCP tool: Python/JS \
             `await tools.server.tool(..)`, `search_tools(query)`, `help()`; Bash `mcp server \
             tool --arg x`.",
        object(
            &json!({
                "language": languages(),
                "code": string(),
                "timeout_ms": {"type": "integer", "description": "1-300000, default 30000"},
                "working_dir": {"type": "string", "description": "whole path"},
                "input": {"description": "any JSON, `input` in the code"},
            }),
            &["language", "code"],
        ),
        run_annotations("Run code"),
    )]
}

fn session_tools() -> Vec<Tool> {
    vec![
        tool(
            "start_session",
            "Open a session that keeps variables, imports and files between sends; ends after 15 \
             min without one.",
            object(
                &json!({
                    "language": languages(), "name": string(), "working_dir": string(),
                }),
                &["language"],
            ),
            write_annotations("Start session"),
        ),
        tool(
            "send_to_session",
            "Run code in a session; the last expression is shown.",
            object(
                &json!({
                    "session_id": string(), "code": string(), "timeout_ms": {"type": "integer"},
                }),
                &["session_id", "code"],
            ),
            run_annotations("Send to session"),
        ),
        tool(
            "close_session",
            "End a session and free what it holds.",
            object(&json!({"session_id": string()}), &["session_id"]),
            destructive_annotations("Close session"),
        ),
        tool(
            "list_sessions",
            "Open sessions.",
            object(&json!({}), &[]),
            read_only_annotations("List sessions"),
        ),
        tool(
            "install_package",
            "Install a pip or npm package into a session, or without one for all.",
            object(
                &json!({
                    "session_id": string(),
                    "package": {"type": "string", "description": "name, or name==1.2 / name@1.2"},
                    "language": {"enum": ["python", "node"]},
                }),
                &["package", "language"],
            ),
            run_annotations("Install package"),
        ),
    ]
}

fn script_tools() -> Vec<Tool> {
    vec![
        tool(
            "save_script",
            "Keep working code under a name; saving again makes a new version.",
            object(&script_properties(), &["name", "description", "language", "code"]),
            write_annotations("Save script"),
        ),
        tool(
            "get_script",
            "A saved script with its code.",
            object(&json!({"name": string(), "version": {"type": "integer"}}), &["name"]),
            read_only_annotations("Get script"),
        ),
        tool(
            "list_scripts",
            "Saved scripts.",
            object(&json!({"language": languages(), "tag": string()}), &[]),
            read_only_annotations("List scripts"),
        ),
        tool(
            "search_scripts",
            "Find saved scripts, best first.",
            object(&json!({"query": string()}), &["query"]),
            read_only_annotations("Search scripts"),
        ),
        tool(
            "run_script",
            "Run a saved script.",
            object(
                &json!({
                    "name": string(),
                    "args": strings(),
                    "input": {"description": "any JSON"},
                    "version": {"type": "integer"},
                    "timeout_ms": {"type": "integer"},
                }),
                &["name"],
            ),
            run_annotations("Run script"),
        ),
        tool(
            "save_and_run_script",
            "save_script, then run_script.",
            object(
                &with_properties(
                    script_properties(),
                    &[("args", strings()), ("timeout_ms", json!({"type": "integer"}))],
                ),
                &["name", "description", "language", "code"],
            ),
            run_annotations("Save and run script"),
        ),
        tool(
            "delete_script",
            "Remove a script and its versions.",
            object(&json!({"name": string()}), &["name"]),
            destructive_annotations("Delete script"),
        ),
    ]
}

fn log_tools() -> Vec<Tool> {
    vec![
        tool(
            "search_execution_logs",
            "Past executions, newest first.",
            object(
                &json!({
                    "language": languages(),
                    "status": {"enum": ["success", "failed", "timeout"]},
                    "query": {"type": "string", "description": "words in code or output"},
                    "since": {"type": "string", "description": "2026-02-09 or with a time"},
                    "session_id": string(),
                    "tool": string(),
                    "limit": {"type": "integer", "description": "default 20"},
                    "offset": {"type": "integer"},
                }),
                &[],
            ),
            read_only_annotations("Search logs"),
        ),
        tool(
            "get_execution_log",
            "All that is kept of one execution.",
            object(&json!({"execution_id": string()}), &["execution_id"]),
            read_only_annotations("Get log"),
        ),
    ]
}

fn run_annotations(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title).destructive(true).open_world(true)
}

fn read_only_annotations(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title).read_only(true)
}

fn write_annotations(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title).destructive(false)
}

fn destructive_annotations(title: &str) -> ToolAnnotations {
    ToolAnnotations::with_title(title).destructive(true).idempotent(true)
}

fn script_properties() -> Value {
    json!({
        "name": string(),
        "description": string(),
        "language": languages(),
        "code": string(),
        "tags": strings(),
        "packages": strings(),
        "parameters": {"type": "object", "description": "JSON Schema of `input`"},
        "source_execution_id": string(),
        "expose": {"type": "boolean", "description": "as a tool of its own"},
    })
}

fn with_properties(mut object: Value, more: &[(&str, Value)]) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    }
    object
}

fn object(properties: &Value, required: &[&str]) -> Value {
    match required {
        [] => json!({"type": "object", "properties": properties}),
        required => {
            json!({"type": "object", "properties": properties, "required": required})
        }
    }
}

fn languages() -> Value {
    json!({"enum": Language::ALL.map(Language::name)})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn strings() -> Value {
    json!({"type": "array", "items": string()})
}
