//! How each client writes a server down. What differs between them is data.

use super::{Client, RemoteKind, expand::Variables, syntax::Syntax};

/// One client's way to write.
pub(super) struct Dialect {
    pub(super) syntax: Syntax,
    /// The key of the file that holds the servers.
    pub(super) root: &'static str,
    pub(super) variables: Variables,
    /// The keys that may say which transport an entry has.
    pub(super) kinds: &'static [&'static str],
    pub(super) command: &'static str,
    pub(super) cwd: &'static str,
    pub(super) env: &'static str,
    /// The keys that may hold an address, and the transport that each means by itself; `None`
    /// where the entry has to say it.
    pub(super) urls: &'static [(&'static str, Option<RemoteKind>)],
    pub(super) headers: &'static str,
    /// Of one call.
    pub(super) timeout: Option<(&'static str, Unit)>,
    pub(super) startup_timeouts: &'static [(&'static str, Unit)],
    pub(super) enabled_tools: Option<&'static str>,
    pub(super) disabled_tools: Option<&'static str>,
    /// Whether an entry may say that its tools wait for the user's word.
    pub(super) has_quarantine: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    /// A text like `90s` or `1m30s`.
    Written,
}

const HTTP: Option<RemoteKind> = Some(RemoteKind::Http);
const SSE: Option<RemoteKind> = Some(RemoteKind::Sse);

/// What most do.
const USUAL: Dialect = Dialect {
    syntax: Syntax::Json,
    root: "mcpServers",
    variables: Variables::None,
    kinds: &["type", "transport", "transportType"],
    command: "command",
    cwd: "cwd",
    env: "env",
    urls: &[("url", HTTP), ("serverUrl", HTTP)],
    headers: "headers",
    timeout: None,
    startup_timeouts: &[],
    enabled_tools: None,
    disabled_tools: None,
    has_quarantine: false,
};

const NAMED: Dialect = Dialect {
    variables: Variables::Braces,
    timeout: Some(("timeout", Unit::Milliseconds)),
    ..USUAL
};

const CLAUDE_CODE: Dialect = Dialect { urls: &[("url", None)], ..NAMED };

const CURSOR: Dialect = Dialect { variables: Variables::Editor, ..USUAL };

const VS_CODE: Dialect = Dialect { root: "servers", variables: Variables::Editor, ..USUAL };

const COPILOT: Dialect =
    Dialect { variables: Variables::Braces, enabled_tools: Some("tools"), ..USUAL };

const WINDSURF: Dialect = Dialect {
    variables: Variables::Editor,
    urls: &[("serverUrl", HTTP), ("url", HTTP)],
    disabled_tools: Some("disabledTools"),
    ..USUAL
};

const ZED: Dialect =
    Dialect { root: "context_servers", timeout: Some(("timeout", Unit::Seconds)), ..USUAL };

const CODEX: Dialect = Dialect {
    syntax: Syntax::Toml,
    root: "mcp_servers",
    headers: "http_headers",
    timeout: Some(("tool_timeout_sec", Unit::Seconds)),
    startup_timeouts: &[
        ("startup_timeout_sec", Unit::Seconds),
        ("startup_timeout_ms", Unit::Milliseconds),
    ],
    enabled_tools: Some("enabled_tools"),
    disabled_tools: Some("disabled_tools"),
    ..USUAL
};

const GEMINI: Dialect = Dialect {
    variables: Variables::Dollar,
    urls: &[("httpUrl", HTTP), ("url", SSE)],
    timeout: Some(("timeout", Unit::Milliseconds)),
    enabled_tools: Some("includeTools"),
    disabled_tools: Some("excludeTools"),
    ..USUAL
};

const OPEN_CODE: Dialect = Dialect {
    root: "mcp",
    variables: Variables::Curly,
    env: "environment",
    startup_timeouts: &[("timeout", Unit::Milliseconds)],
    ..USUAL
};

const CLINE: Dialect = Dialect {
    variables: Variables::Editor,
    urls: &[("url", SSE)],
    timeout: Some(("timeout", Unit::Seconds)),
    ..USUAL
};

const GOOSE: Dialect = Dialect {
    syntax: Syntax::Yaml,
    root: "extensions",
    command: "cmd",
    env: "envs",
    urls: &[("uri", HTTP)],
    timeout: Some(("timeout", Unit::Seconds)),
    enabled_tools: Some("available_tools"),
    ..USUAL
};

/// Its servers stand in a list, each with its name.
pub(super) const MCPPROXY: Dialect = Dialect {
    variables: Variables::Proxy,
    kinds: &["protocol", "type"],
    cwd: "working_dir",
    startup_timeouts: &[("init_timeout", Unit::Written)],
    enabled_tools: Some("enabled_tools"),
    disabled_tools: Some("disabled_tools"),
    has_quarantine: true,
    ..USUAL
};

const OWN: Dialect = Dialect {
    syntax: Syntax::Toml,
    root: "servers",
    variables: Variables::Braces,
    timeout: Some(("timeout-ms", Unit::Milliseconds)),
    startup_timeouts: &[("startup-timeout-ms", Unit::Milliseconds)],
    enabled_tools: Some("enabled-tools"),
    disabled_tools: Some("disabled-tools"),
    ..USUAL
};

impl Dialect {
    pub(super) fn of(client: Client) -> &'static Dialect {
        match client {
            Client::ClaudeCode => &CLAUDE_CODE,
            Client::Cursor => &CURSOR,
            Client::VsCode => &VS_CODE,
            Client::Codex => &CODEX,
            Client::Gemini => &GEMINI,
            Client::Copilot => &COPILOT,
            Client::Windsurf => &WINDSURF,
            Client::Zed => &ZED,
            Client::OpenCode => &OPEN_CODE,
            Client::Goose => &GOOSE,
            Client::Cline => &CLINE,
            Client::ClaudeDesktop => &USUAL,
            Client::Shared | Client::CodeExecutor | Client::CodeExecutionMode | Client::Named => {
                &NAMED
            }
            Client::Mcpproxy => &MCPPROXY,
            Client::Own => &OWN,
        }
    }
}
