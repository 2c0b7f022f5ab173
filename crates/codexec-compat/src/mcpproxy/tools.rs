use codexec_server::mcp::tool;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::json;

use super::settings::ProxySettings;

/// Returns the tools, without `code_execution` if it is disabled.
pub(super) fn tools(settings: &ProxySettings) -> Vec<Tool> {
    let code_execution = settings.is_enabled.then(code_execution);
    code_execution.into_iter().chain([retrieve_tools(), call_tool()]).collect()
}

fn code_execution() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "script": {"type": "string", "description": "instead of code: a stored one's name"},
            "language": {"enum": ["javascript", "typescript"], "default": "javascript"},
            "input": {"type": "object", "description": "`input` in the code"},
            "options": {
                "type": "object",
                "properties": {
                    "timeout_ms": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 600_000,
                        "default": 120_000,
                    },
                    "max_tool_calls": {"type": "integer", "description": "0: no limit of its own"},
                    "allowed_servers": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "empty: all",
                    },
                },
            },
        },
    });
    let description = "Run JavaScript or TypeScript in a sandbox that calls several MCP tools in \
        one request: loop, branch, filter, join. `call_tool(server, tool, args)` waits and gives \
        {ok, result} or {ok: false, error: {code, message}}; `call_tools([{server, tool, args}])` \
        calls many at once; `input` is the input. `return` a value or let it be the last \
        expression. Gives {ok, value} or {ok: false, error}. For one call use call_tool.";
    let annotations = ToolAnnotations::with_title("Run code").destructive(true).open_world(true);
    tool("code_execution", description, schema, annotations)
}

fn retrieve_tools() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what it should do, in words"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "detail": {"enum": ["full", "compact"], "description": "compact: no schemas"},
            "server": {"type": "string"},
            "read_only_only": {"type": "boolean"},
            "exclude_destructive": {"type": "boolean"},
        },
        "required": ["query"],
    });
    let description = "Find tools, best first; call them with call_tool, or from code_execution.";
    let annotations = ToolAnnotations::with_title("Find tools").read_only(true).open_world(false);
    tool("retrieve_tools", description, schema, annotations)
}

fn call_tool() -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "server:tool"},
            "args": {"type": "object"},
            "args_json": {"type": "string", "description": "instead of args: their JSON"},
            "intent": {
                "type": "object",
                "properties": {
                    "operation_type": {"enum": ["read", "write", "destructive"]},
                    "data_sensitivity": {"type": "string"},
                    "reason": {"type": "string"},
                },
            },
        },
        "required": ["name"],
    });
    let annotations = ToolAnnotations::with_title("Call a tool").destructive(true).open_world(true);
    tool("call_tool", "Call one tool that retrieve_tools found.", schema, annotations)
}

#[cfg(test)]
mod tests;
