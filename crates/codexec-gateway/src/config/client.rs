//! The programs whose config files define MCP servers.

/// The owner of a config file that defines servers: a program, codexec, or the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
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
    Own,
    /// A file that the user names: `--mcp-config`, `MCP_CONFIG_PATH`.
    Named,
}

impl Client {
    /// The clients whose files are searched by default. If several define the same server, the
    /// first in this list wins.
    pub const ALL: [Client; 13] = [
        Client::ClaudeCode,
        Client::Cursor,
        Client::VsCode,
        Client::Codex,
        Client::Gemini,
        Client::Copilot,
        Client::Windsurf,
        Client::Zed,
        Client::OpenCode,
        Client::Goose,
        Client::Cline,
        Client::ClaudeDesktop,
        Client::Shared,
    ];

    /// The systems that codexec replaces: their files are searched when their toolset is chosen,
    /// and win over those of [`Client::ALL`].
    pub const REPLACED: [Client; 3] =
        [Client::CodeExecutor, Client::CodeExecutionMode, Client::Mcpproxy];

    /// Returns the name that settings use.
    pub fn name(self) -> &'static str {
        match self {
            Client::ClaudeCode => "claude-code",
            Client::Cursor => "cursor",
            Client::VsCode => "vscode",
            Client::Codex => "codex",
            Client::Gemini => "gemini",
            Client::Copilot => "copilot",
            Client::Windsurf => "windsurf",
            Client::Zed => "zed",
            Client::OpenCode => "opencode",
            Client::Goose => "goose",
            Client::Cline => "cline",
            Client::ClaudeDesktop => "claude-desktop",
            Client::Shared => "mcp",
            Client::CodeExecutor => "code-executor",
            Client::CodeExecutionMode => "code-execution-mode",
            Client::Mcpproxy => "mcpproxy",
            Client::Own => "codexec",
            Client::Named => "named",
        }
    }

    pub fn parse(name: &str) -> Option<Client> {
        Client::ALL.into_iter().find(|client| client.name() == name)
    }
}

/// The scope of a config file. A later variant wins over an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// Everything that the user does.
    User,
    /// One directory; the file comes from whoever wrote the directory's contents.
    Project,
    /// One directory, but defined in the user's own file.
    Local,
    Own,
    Named,
}

impl Reach {
    /// Returns true if the servers belong to the directory that codexec was started in.
    pub(super) fn is_in_project(self) -> bool {
        matches!(self, Reach::Project | Reach::Local)
    }
}
