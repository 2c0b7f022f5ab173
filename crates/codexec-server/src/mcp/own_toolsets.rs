//! codexec's own toolsets.

use rmcp::model::{JsonObject, Tool};

use super::pending_call::{CallOutcome, PendingCall};
use super::tool_request::ToolRequest;
use super::toolset::{ChangingTools, Toolset};
use super::{codexec, direct, execute_code, health, instructions, search_tools, tool, tool_result};

/// The toolset `compact`: `execute_code`, `search_tools`, `health`.
pub struct CompactTools;

/// The toolset `codexec`: sessions, scripts, packages and logs as tools.
pub struct CodexecTools;

/// The toolset `direct`: every upstream tool as `server__tool`.
pub struct DirectTools;

impl CompactTools {
    pub const NAME: &'static str = "compact";
}

impl Toolset for CompactTools {
    fn name(&self) -> &'static str {
        CompactTools::NAME
    }

    fn instructions(&self) -> &'static str {
        instructions::COMPACT
    }

    fn tools(&self) -> Vec<Tool> {
        tool::compact()
    }

    fn has_tool(&self, tool: &str) -> bool {
        ["execute_code", "search_tools", "health"].contains(&tool)
    }

    fn begin(&self, tool: &str, arguments: JsonObject, request: &ToolRequest<'_>) -> PendingCall {
        let connected_at = request.connected_at;
        match tool {
            "execute_code" => execute_code::begin(arguments, request),
            "search_tools" => request.start(move |app, client| async move {
                let reply = search_tools::call(&app, &client.connection, arguments).await;
                CallOutcome::own(tool_result(reply))
            }),
            _ => request.start(move |app, client| async move {
                let connection = &client.connection;
                let reply = health::call(&app, connection, arguments, connected_at).await;
                CallOutcome::own(tool_result(reply))
            }),
        }
    }
}

impl CodexecTools {
    pub const NAME: &'static str = "codexec";
}

impl Toolset for CodexecTools {
    fn name(&self) -> &'static str {
        CodexecTools::NAME
    }

    fn tools(&self) -> Vec<Tool> {
        codexec::tools()
    }

    fn changing_tools(&self) -> ChangingTools {
        ChangingTools::Scripts
    }

    fn has_tool(&self, tool: &str) -> bool {
        codexec::find_tool(tool).is_some() || codexec::is_script(tool)
    }

    fn begin(&self, tool: &str, arguments: JsonObject, request: &ToolRequest<'_>) -> PendingCall {
        match codexec::find_tool(tool) {
            Some(function) => codexec::begin(function, arguments, request),
            None => codexec::begin_script(tool, arguments, request),
        }
    }
}

impl DirectTools {
    pub const NAME: &'static str = "direct";
}

impl Toolset for DirectTools {
    fn name(&self) -> &'static str {
        DirectTools::NAME
    }

    fn instructions(&self) -> &'static str {
        instructions::DIRECT
    }

    fn tools(&self) -> Vec<Tool> {
        Vec::new()
    }

    fn changing_tools(&self) -> ChangingTools {
        ChangingTools::Upstreams
    }

    fn has_tool(&self, tool: &str) -> bool {
        tool.contains("__")
    }

    fn begin(&self, tool: &str, arguments: JsonObject, request: &ToolRequest<'_>) -> PendingCall {
        direct::begin(tool, arguments, request)
    }
}
