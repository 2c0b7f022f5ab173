//! The configuration of one upstream server, whichever file defines it.

use std::{fmt, path::PathBuf, time::Duration};

use codexec_types::ServerName;
use url::Url;

/// A valid entry of a config file.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: ServerName,
    pub transport: TransportConfig,
    /// The file that defines the server.
    pub source: PathBuf,
    pub narrow: ServerOptions,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TransportConfig {
    Stdio(StdioConfig),
    Remote(RemoteConfig),
}

/// A program that speaks MCP on stdin and stdout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StdioConfig {
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, SecretSource)>,
    pub cwd: Option<PathBuf>,
}

/// A server that is reached over HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteConfig {
    pub kind: RemoteKind,
    pub url: Url,
    pub headers: Vec<(String, SecretSource)>,
    pub oauth: OAuthConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteKind {
    /// Streamable HTTP, whichever protocol version the server speaks.
    Http,
    /// HTTP with SSE, the transport before 2025-03-26.
    Sse,
}

/// The OAuth settings of an entry; most entries have none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OAuthConfig {
    pub client_id: Option<String>,
    pub client_secret: Option<SecretSource>,
    pub callback_port: Option<u16>,
    pub scopes: Vec<String>,
}

/// The options of one server. Options that are not set fall back to the common settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerOptions {
    /// If set, only these tools are enabled, by the server's names for them; `*` is a wildcard.
    pub enabled_tools: Option<Vec<String>>,
    pub disabled_tools: Vec<String>,
    pub startup_timeout: Option<Duration>,
    pub call_timeout: Option<Duration>,
    /// Maximum number of concurrent calls.
    pub calls_at_once: Option<usize>,
    pub trust: Option<TrustMode>,
}

/// When a tool definition needs the user's approval before an agent sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustMode {
    /// The first definition is accepted. A change is accepted with a new version of a server that
    /// the user never approved by hand, and held otherwise.
    #[default]
    Auto,
    /// The first definition is accepted. Every change is held.
    Ask,
    /// Every definition is held.
    Manual,
}

/// A secret value, or where it is stored. `Debug` never prints the value.
#[derive(Clone, PartialEq, Eq)]
pub enum SecretSource {
    Plain(String),
    /// `env:NAME`
    Variable(String),
    /// `file:PATH`; the file's text without its trailing newline.
    File(PathBuf),
    /// `keyring:NAME`
    Keyring(String),
}

impl ServerConfig {
    /// Returns the config of a program without options.
    pub fn stdio(name: ServerName, program: StdioConfig, source: PathBuf) -> ServerConfig {
        let transport = TransportConfig::Stdio(program);
        ServerConfig { name, transport, source, narrow: ServerOptions::default() }
    }

    /// Returns true if a connection made for one config also serves the other. The file that
    /// defines the server does not matter.
    pub fn is_same_server(&self, other: &ServerConfig) -> bool {
        self.name == other.name && self.transport == other.transport && self.narrow == other.narrow
    }
}

impl ServerOptions {
    /// Returns true if the tool is enabled.
    pub fn is_tool_enabled(&self, tool: &str) -> bool {
        let names = |list: &[String]| list.iter().any(|pattern| matches(pattern, tool));
        self.enabled_tools.as_deref().is_none_or(names) && !names(&self.disabled_tools)
    }
}

impl TrustMode {
    pub const ALL: [TrustMode; 3] = [TrustMode::Auto, TrustMode::Ask, TrustMode::Manual];

    pub fn name(self) -> &'static str {
        match self {
            TrustMode::Auto => "auto",
            TrustMode::Ask => "ask",
            TrustMode::Manual => "manual",
        }
    }

    pub fn parse(name: &str) -> Option<TrustMode> {
        TrustMode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Plain(_) => f.write_str("Plain(..)"),
            SecretSource::Variable(name) => write!(f, "Variable({name:?})"),
            SecretSource::File(path) => write!(f, "File({path:?})"),
            SecretSource::Keyring(name) => write!(f, "Keyring({name:?})"),
        }
    }
}

/// Matches a pattern in which `*` stands for any number of characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_filtered_by_pattern() {
        let check = |enabled: Option<&[&str]>, disabled: &[&str], tool: &str, expected: bool| {
            let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let narrow = ServerOptions {
                enabled_tools: enabled.map(list),
                disabled_tools: list(disabled),
                ..ServerOptions::default()
            };
            assert_eq!(narrow.is_tool_enabled(tool), expected, "{enabled:?} {disabled:?} {tool}");
        };
        check(None, &[], "get", true);
        check(Some(&[]), &[], "get", false);
        check(Some(&["get", "list_*"]), &[], "list_all", true);
        check(Some(&["get", "list_*"]), &[], "put", false);
        check(None, &["*_all"], "list_all", false);
        check(None, &["*_all"], "list_all_of_them", true);
        check(None, &["a*b*c"], "a-b-b-c", false);
        check(None, &["a*ba"], "aba", false);
        check(None, &["aa*a"], "aa", true);
        check(Some(&["*"]), &["get"], "get", false);
    }

    #[test]
    fn debug_hides_a_secret() {
        assert_eq!(format!("{:?}", SecretSource::Plain("hunter2".to_owned())), "Plain(..)");
    }
}
