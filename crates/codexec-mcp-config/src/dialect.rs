//! The config format of each client, as a table of keys and units.

use super::{ConfigOwner, RemoteKind, expand::VariableSyntax, syntax::Syntax};

/// The config format of one client.
pub(super) struct Dialect {
    pub(super) syntax: Syntax,
    /// The key of the table that holds the servers.
    pub(super) root: &'static str,
    pub(super) variables: VariableSyntax,
    /// The keys that may name an entry's transport.
    pub(super) transport_keys: &'static [&'static str],
    pub(super) command: &'static str,
    pub(super) cwd: &'static str,
    pub(super) env: &'static str,
    /// The keys that may hold a URL, and the transport that each implies; `None` if the entry
    /// must name its transport.
    pub(super) urls: &'static [(&'static str, Option<RemoteKind>)],
    pub(super) headers: &'static str,
    /// The timeout of one tool call.
    pub(super) timeout: Option<(&'static str, DurationUnit)>,
    pub(super) startup_timeouts: &'static [(&'static str, DurationUnit)],
    pub(super) enabled_tools: Option<&'static str>,
    pub(super) disabled_tools: Option<&'static str>,
    /// True if an entry can say that its tools need the user's approval.
    pub(super) has_quarantine: bool,
}

#[derive(Clone, Copy)]
pub(super) enum DurationUnit {
    Seconds,
    Milliseconds,
    /// A Go duration string such as `90s` or `1m30s`.
    GoDuration,
}

const HTTP: Option<RemoteKind> = Some(RemoteKind::Http);
const SSE: Option<RemoteKind> = Some(RemoteKind::Sse);

/// The format that most clients share.
const COMMON: Dialect = Dialect {
    syntax: Syntax::Json,
    root: "mcpServers",
    variables: VariableSyntax::None,
    transport_keys: &["type", "transport", "transportType"],
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
    variables: VariableSyntax::Braces,
    timeout: Some(("timeout", DurationUnit::Milliseconds)),
    ..COMMON
};

const CLAUDE_CODE: Dialect = Dialect { urls: &[("url", None)], ..NAMED };

const CURSOR: Dialect = Dialect { variables: VariableSyntax::Editor, ..COMMON };

const VS_CODE: Dialect = Dialect { root: "servers", variables: VariableSyntax::Editor, ..COMMON };

const COPILOT: Dialect =
    Dialect { variables: VariableSyntax::Braces, enabled_tools: Some("tools"), ..COMMON };

const WINDSURF: Dialect = Dialect {
    variables: VariableSyntax::Editor,
    urls: &[("serverUrl", HTTP), ("url", HTTP)],
    disabled_tools: Some("disabledTools"),
    ..COMMON
};

const ZED: Dialect = Dialect {
    root: "context_servers",
    timeout: Some(("timeout", DurationUnit::Seconds)),
    ..COMMON
};

const CODEX: Dialect = Dialect {
    syntax: Syntax::Toml,
    root: "mcp_servers",
    headers: "http_headers",
    timeout: Some(("tool_timeout_sec", DurationUnit::Seconds)),
    startup_timeouts: &[
        ("startup_timeout_sec", DurationUnit::Seconds),
        ("startup_timeout_ms", DurationUnit::Milliseconds),
    ],
    enabled_tools: Some("enabled_tools"),
    disabled_tools: Some("disabled_tools"),
    ..COMMON
};

const GEMINI: Dialect = Dialect {
    variables: VariableSyntax::Dollar,
    urls: &[("httpUrl", HTTP), ("url", SSE)],
    timeout: Some(("timeout", DurationUnit::Milliseconds)),
    enabled_tools: Some("includeTools"),
    disabled_tools: Some("excludeTools"),
    ..COMMON
};

const OPEN_CODE: Dialect = Dialect {
    root: "mcp",
    variables: VariableSyntax::Curly,
    env: "environment",
    startup_timeouts: &[("timeout", DurationUnit::Milliseconds)],
    ..COMMON
};

const CLINE: Dialect = Dialect {
    variables: VariableSyntax::Editor,
    urls: &[("url", SSE)],
    timeout: Some(("timeout", DurationUnit::Seconds)),
    ..COMMON
};

const GOOSE: Dialect = Dialect {
    syntax: Syntax::Yaml,
    root: "extensions",
    command: "cmd",
    env: "envs",
    urls: &[("uri", HTTP)],
    timeout: Some(("timeout", DurationUnit::Seconds)),
    enabled_tools: Some("available_tools"),
    ..COMMON
};

/// MCPProxy has a list of servers, each with its name.
pub(super) const MCPPROXY: Dialect = Dialect {
    variables: VariableSyntax::Proxy,
    transport_keys: &["protocol", "type"],
    cwd: "working_dir",
    startup_timeouts: &[("init_timeout", DurationUnit::GoDuration)],
    enabled_tools: Some("enabled_tools"),
    disabled_tools: Some("disabled_tools"),
    has_quarantine: true,
    ..COMMON
};

const OWN: Dialect = Dialect {
    syntax: Syntax::Toml,
    root: "servers",
    variables: VariableSyntax::Braces,
    timeout: Some(("timeout-ms", DurationUnit::Milliseconds)),
    startup_timeouts: &[("startup-timeout-ms", DurationUnit::Milliseconds)],
    enabled_tools: Some("enabled-tools"),
    disabled_tools: Some("disabled-tools"),
    ..COMMON
};

impl Dialect {
    pub(super) fn of(client: ConfigOwner) -> &'static Dialect {
        match client {
            ConfigOwner::ClaudeCode => &CLAUDE_CODE,
            ConfigOwner::Cursor => &CURSOR,
            ConfigOwner::VsCode => &VS_CODE,
            ConfigOwner::Codex => &CODEX,
            ConfigOwner::Gemini => &GEMINI,
            ConfigOwner::Copilot => &COPILOT,
            ConfigOwner::Windsurf => &WINDSURF,
            ConfigOwner::Zed => &ZED,
            ConfigOwner::OpenCode => &OPEN_CODE,
            ConfigOwner::Goose => &GOOSE,
            ConfigOwner::Cline => &CLINE,
            ConfigOwner::ClaudeDesktop => &COMMON,
            ConfigOwner::Shared
            | ConfigOwner::CodeExecutor
            | ConfigOwner::CodeExecutionMode
            | ConfigOwner::Named => &NAMED,
            ConfigOwner::Mcpproxy => &MCPPROXY,
            ConfigOwner::Codexec => &OWN,
        }
    }
}
