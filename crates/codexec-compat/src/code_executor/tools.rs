//! The definitions of the tools. Small, because every agent pays for them in every conversation.

use std::sync::Arc;

use codexec_server::mcp::tool;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::request::{
    MAX_SAMPLING_ROUNDS, MAX_SAMPLING_TOKENS, MAX_TIMEOUT_MS, MIN_SAMPLING_TOKENS, MIN_TIMEOUT_MS,
};

const TYPESCRIPT: &str = "Run TypeScript or JavaScript in a sandbox without network and files. \
    In it `await searchTools('words', 10)`, `discoverMCPTools({search: ['word']})`, \
    `getToolSchema(name)` find any MCP tool; `callMCPTool('mcp__server__tool', {..})` calls those \
    in allowedTools. The output is what is printed, and `return`.";

const PYTHON: &str = "Run Python in a sandbox without network. In it \
    `await search_tools('words', 10)`, `discover_mcp_tools(['word'])`, `get_tool_schema(name)` \
    find any MCP tool; `call_mcp_tool('mcp__server__tool', {..})` calls those in allowedTools. \
    The output is what is printed, and the last expression.";

pub(super) fn tools() -> Vec<Tool> {
    let runs = |title: &str| ToolAnnotations::with_title(title).destructive(true).open_world(true);
    let reads = ToolAnnotations::with_title("Server health").read_only(true).open_world(false);
    vec![
        with_output_schema(
            tool("executeTypescript", TYPESCRIPT, input_schema(), runs("Run TypeScript")),
            execution_schema(),
        ),
        with_output_schema(
            tool("executePython", PYTHON, input_schema(), runs("Run Python")),
            execution_schema(),
        ),
        with_output_schema(
            tool("health", "State of the server.", empty_object(), reads),
            health_schema(),
        ),
    ]
}

fn with_output_schema(mut tool: Tool, schema: Value) -> Tool {
    if let Value::Object(schema) = schema {
        tool.output_schema = Some(Arc::new(schema));
    }
    tool
}

fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "code": string(),
            "allowedTools": {
                "type": "array",
                "items": string(),
                "description": "`mcp__server__tool` or `mcp__server__*`; default none",
            },
            "timeoutMs": number(MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
            "permissions": {
                "type": "object",
                "properties": {"read": strings(), "write": strings(), "net": strings()},
                "description": "a directory; Python starts in it",
            },
            "skipDangerousPatternCheck": boolean(),
            "enableSampling": boolean(),
            "maxSamplingRounds": number(1, MAX_SAMPLING_ROUNDS),
            "maxSamplingTokens": number(MIN_SAMPLING_TOKENS, MAX_SAMPLING_TOKENS),
            "samplingSystemPrompt": string(),
            "allowedSamplingModels": strings(),
        },
        "required": ["code"],
        "additionalProperties": false,
    })
}

fn execution_schema() -> Value {
    let any = json!({"type": "number"});
    json!({
        "type": "object",
        "properties": {
            "success": boolean(),
            "output": string(),
            "error": string(),
            "executionTimeMs": any,
            "toolCallsMade": strings(),
            "toolCallSummary": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "toolName": string(),
                        "callCount": any,
                        "successCount": any,
                        "errorCount": any,
                        "totalDurationMs": any,
                        "averageDurationMs": any,
                        "lastCallDurationMs": any,
                        "lastCallStatus": {"enum": ["success", "error"]},
                        "lastErrorMessage": string(),
                    },
                },
            },
        },
        "required": ["success", "output", "executionTimeMs"],
    })
}

fn health_schema() -> Value {
    let any = json!({"type": "number"});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let fields = json!({
        "healthy": boolean(),
        "auditLog": object(json!({"enabled": boolean()})),
        "mcpClients": object(json!({"connected": any})),
        "connectionPool": object(json!({"active": any, "waiting": any, "max": any})),
        "uptime": any,
        "timestamp": string(),
    });
    let required: Vec<&String> =
        fields.as_object().into_iter().flat_map(|all| all.keys()).collect();
    json!({"type": "object", "properties": fields, "required": required})
}

fn empty_object() -> Value {
    json!({"type": "object", "additionalProperties": false})
}

fn string() -> Value {
    json!({"type": "string"})
}

fn strings() -> Value {
    json!({"type": "array", "items": string()})
}

fn boolean() -> Value {
    json!({"type": "boolean"})
}

fn number(min: u64, max: u64) -> Value {
    json!({"type": "integer", "minimum": min, "maximum": max})
}

#[cfg(test)]
mod tests;
