use codexec_mcp_config::ConfigOwner;
use codexec_server::mcp::{CodexecTools, ToolsetNames};

/// A system that codexec replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    CodeExecutor,
    Codexec,
    CodeExecutionMode,
    Mcpproxy,
}

impl Seed {
    pub const ALL: [Seed; 4] =
        [Seed::CodeExecutor, Seed::Codexec, Seed::CodeExecutionMode, Seed::Mcpproxy];

    /// Returns the name that the system's authors use.
    pub fn title(self) -> &'static str {
        match self {
            Seed::CodeExecutor => "Code Executor MCP",
            Seed::Codexec => "CodeExec MCP",
            Seed::CodeExecutionMode => "MCP Server Code Execution Mode",
            Seed::Mcpproxy => "MCPProxy",
        }
    }

    /// Returns the name of the toolset that replaces the system.
    pub fn toolset(self) -> &'static str {
        match self {
            Seed::CodeExecutor => "code-executor",
            // codexec's own tools for sessions, scripts and logs.
            Seed::Codexec => CodexecTools::NAME,
            Seed::CodeExecutionMode => "code-execution-mode",
            Seed::Mcpproxy => "mcpproxy",
        }
    }

    /// Returns the owner of the system's files that name MCP servers, if it has such files.
    pub fn config_owner(self) -> Option<ConfigOwner> {
        match self {
            Seed::CodeExecutor => Some(ConfigOwner::CodeExecutor),
            Seed::Codexec => None,
            Seed::CodeExecutionMode => Some(ConfigOwner::CodeExecutionMode),
            Seed::Mcpproxy => Some(ConfigOwner::Mcpproxy),
        }
    }

    /// Returns true if the system's toolset is chosen.
    pub fn is_chosen(self, toolsets: &ToolsetNames) -> bool {
        toolsets.has(self.toolset())
    }
}
