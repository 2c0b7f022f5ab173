//! Whose files name servers.

/// A program whose file names servers, or ourselves.
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
    /// `~/.config/mcp`, which is nobody's.
    Shared,
    /// Code Executor MCP, whose toolset we have.
    CodeExecutor,
    /// MCP Server Code Execution Mode, whose toolset we have.
    CodeExecutionMode,
    /// MCPProxy, whose toolset we have.
    Mcpproxy,
    /// Our own settings.
    Own,
    /// A file that somebody named: `--mcp-config`, `MCP_CONFIG_PATH`.
    Named,
}

impl Client {
    /// Those whose files we look for. Where several name a server, the first here counts.
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

    /// The systems that we replace: their files are looked for when their toolset is chosen, and
    /// count more than those of [`Client::ALL`].
    pub const REPLACED: [Client; 3] =
        [Client::CodeExecutor, Client::CodeExecutionMode, Client::Mcpproxy];

    /// As settings write it.
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

/// For whom a file speaks. The later in this list, the nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reach {
    /// All that the user does.
    User,
    /// What is done in one directory; whoever wrote what is in it wrote this too.
    Project,
    /// The same, but kept in the user's own file.
    Local,
    Own,
    Named,
}

impl Reach {
    /// Whether its servers belong to the directory that we were started in.
    pub(super) fn is_in_project(self) -> bool {
        matches!(self, Reach::Project | Reach::Local)
    }
}
