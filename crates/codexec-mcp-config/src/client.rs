//! The programs whose config files define MCP servers.

/// The owner of a config file that defines servers: a program, codexec, or the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigOwner {
    ClaudeCode,
    Cursor,
    VsCode,
    Codex,
    Gemini,
    Copilot,
    Windsurf,
    Zed,
    OpenCode,
    Goose,
    Cline,
    ClaudeDesktop,
    /// `~/.config/mcp`, which belongs to no program.
    Shared,
    /// Code Executor MCP, whose toolset codexec offers.
    CodeExecutor,
    /// MCP Server Code Execution Mode, whose toolset codexec offers.
    CodeExecutionMode,
    /// MCPProxy, whose toolset codexec offers.
    Mcpproxy,
    /// codexec's own settings.
    Codexec,
    /// A file that the user names: `--mcp-config`, `MCP_CONFIG_PATH`.
    Named,
}

impl ConfigOwner {
    /// The clients whose files are searched by default. If several define the same server, the
    /// first in this list wins.
    pub const ALL: [ConfigOwner; 13] = [
        ConfigOwner::ClaudeCode,
        ConfigOwner::Cursor,
        ConfigOwner::VsCode,
        ConfigOwner::Codex,
        ConfigOwner::Gemini,
        ConfigOwner::Copilot,
        ConfigOwner::Windsurf,
        ConfigOwner::Zed,
        ConfigOwner::OpenCode,
        ConfigOwner::Goose,
        ConfigOwner::Cline,
        ConfigOwner::ClaudeDesktop,
        ConfigOwner::Shared,
    ];

    /// The systems that codexec replaces: their files are searched when their toolset is chosen,
    /// and win over those of [`ConfigOwner::ALL`].
    pub const REPLACED: [ConfigOwner; 3] =
        [ConfigOwner::CodeExecutor, ConfigOwner::CodeExecutionMode, ConfigOwner::Mcpproxy];

    /// Returns the name that settings use.
    pub fn name(self) -> &'static str {
        match self {
            ConfigOwner::ClaudeCode => "claude-code",
            ConfigOwner::Cursor => "cursor",
            ConfigOwner::VsCode => "vscode",
            ConfigOwner::Codex => "codex",
            ConfigOwner::Gemini => "gemini",
            ConfigOwner::Copilot => "copilot",
            ConfigOwner::Windsurf => "windsurf",
            ConfigOwner::Zed => "zed",
            ConfigOwner::OpenCode => "opencode",
            ConfigOwner::Goose => "goose",
            ConfigOwner::Cline => "cline",
            ConfigOwner::ClaudeDesktop => "claude-desktop",
            ConfigOwner::Shared => "mcp",
            ConfigOwner::CodeExecutor => "code-executor",
            ConfigOwner::CodeExecutionMode => "code-execution-mode",
            ConfigOwner::Mcpproxy => "mcpproxy",
            ConfigOwner::Codexec => "codexec",
            ConfigOwner::Named => "named",
        }
    }

    pub fn parse(name: &str) -> Option<ConfigOwner> {
        ConfigOwner::ALL.into_iter().find(|client| client.name() == name)
    }
}

/// The scope of a config file. A later variant wins over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ConfigScope {
    /// Every directory of the user.
    User,
    /// One directory; the file comes from whoever wrote the directory's contents.
    Project,
    /// One directory, but defined in the user's own file.
    Local,
    Own,
    Named,
}

impl ConfigScope {
    /// Returns true if the servers belong to the directory that codexec was started in.
    pub(super) fn is_in_project(self) -> bool {
        matches!(self, ConfigScope::Project | ConfigScope::Local)
    }
}
