//! One upstream as we know it, whoever's file it came from.

use std::{fmt, path::PathBuf, time::Duration};

use codexec_types::ServerName;
use url::Url;

/// One entry that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: ServerName,
    pub transport: TransportConfig,
    /// The file that names it.
    pub source: PathBuf,
    pub narrow: Narrow,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TransportConfig {
    Stdio(StdioConfig),
    Remote(RemoteConfig),
}

/// A program that speaks MCP on its standard input and output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StdioConfig {
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, Secret)>,
    pub cwd: Option<PathBuf>,
}

/// A server somewhere on the network.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteConfig {
    pub kind: RemoteKind,
    pub url: Url,
    pub headers: Vec<(String, Secret)>,
    pub oauth: OAuthConfig,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteKind {
    /// Streamable HTTP, whichever era the server speaks.
    Http,
    /// HTTP with a separate stream of events, as before 2025-03-26.
    Sse,
}

/// What a file says about logging in; most say nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OAuthConfig {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    pub callback_port: Option<u16>,
    pub scopes: Vec<String>,
}

/// What our own file takes away from a server, or sets for it. Nothing set: the common settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Narrow {
    /// Only these tools, by their own names; `*` stands for anything.
    pub enabled_tools: Option<Vec<String>>,
    pub disabled_tools: Vec<String>,
    pub startup_timeout: Option<Duration>,
    pub call_timeout: Option<Duration>,
    /// Calls that it works on at a time.
    pub calls_at_once: Option<usize>,
    pub trust: Option<TrustMode>,
}

/// When a definition needs the user's word before an agent sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TrustMode {
    /// What is seen first is taken. A change is taken with a new version of a server that the
    /// user never approved by hand, and held otherwise.
    #[default]
    Auto,
    /// What is seen first is taken. Every change is held.
    Ask,
    /// Everything is held.
    Manual,
}

/// A value, or where it is kept. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    Plain(String),
    /// `env:NAME`
    Variable(String),
    /// `file:PATH`; the text without the newline at its end.
    File(PathBuf),
    /// `keyring:NAME`
    Keyring(String),
}

impl ServerConfig {
    /// A program with nothing narrowed.
    pub fn stdio(name: ServerName, program: StdioConfig, source: PathBuf) -> ServerConfig {
        let transport = TransportConfig::Stdio(program);
        ServerConfig { name, transport, source, narrow: Narrow::default() }
    }

    /// Whether a connection made for one serves for the other: which file names it is the same to
    /// the server.
    pub(crate) fn is_same_server(&self, other: &ServerConfig) -> bool {
        self.name == other.name && self.transport == other.transport && self.narrow == other.narrow
    }
}

impl Narrow {
    /// Whether the user wants this tool.
    pub fn has(&self, tool: &str) -> bool {
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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Secret::Plain(_) => f.write_str("Plain(..)"),
            Secret::Variable(name) => write!(f, "Variable({name:?})"),
            Secret::File(path) => write!(f, "File({path:?})"),
            Secret::Keyring(name) => write!(f, "Keyring({name:?})"),
        }
    }
}

/// `*` stands for any run of characters.
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
    fn tools_are_narrowed_by_pattern() {
        let check = |enabled: Option<&[&str]>, disabled: &[&str], tool: &str, expected: bool| {
            let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            let narrow = Narrow {
                enabled_tools: enabled.map(list),
                disabled_tools: list(disabled),
                ..Narrow::default()
            };
            assert_eq!(narrow.has(tool), expected, "{enabled:?} {disabled:?} {tool}");
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
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret::Plain("hunter2".to_owned())), "Plain(..)");
    }
}
