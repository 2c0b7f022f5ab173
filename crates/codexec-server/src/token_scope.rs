//! The permissions of a token, as the words that people write.

use std::time::Duration;

use codexec_types::{Language, Policy, ToolPattern};

/// What the holder of a token may do. A scope only narrows what the settings allow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenScope {
    /// Not set: all toolsets.
    toolsets: Option<Vec<String>>,
    /// Names of servers, with `*` as a wildcard. Not set: all servers.
    servers: Option<Vec<String>>,
    /// Not set: all languages.
    languages: Option<Vec<Language>>,
    is_read_only: bool,
    reads_everyone: bool,
    files: FileScope,
    timeout: Option<Duration>,
    tool_calls: Option<u32>,
    requests_per_minute: Option<u32>,
}

/// What code of the token may do with the user's directories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FileScope {
    /// What the settings say.
    #[default]
    AsSet,
    ReadOnly,
    None,
}

/// A word that names no scope.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a scope; write read, write, everyone, toolset:NAME, server:NAME, language:NAME, \
     files:none, files:read, limit:timeout-ms=N, limit:tool-calls=N or \
     limit:requests-per-minute=N"
)]
pub struct InvalidScope(pub String);

impl TokenScope {
    /// The scope of the first token.
    pub fn all() -> TokenScope {
        TokenScope { reads_everyone: true, ..TokenScope::default() }
    }

    /// Parses words. Without any, the token may do everything, but sees only what is its own.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<TokenScope, InvalidScope> {
        let mut scope = TokenScope::default();
        let (mut reads, mut writes) = (false, false);
        for word in words {
            let invalid = || InvalidScope(word.chars().take(100).collect());
            match word.split_once(':') {
                None if word == "read" => reads = true,
                None if word == "write" => writes = true,
                None if word == "everyone" => scope.reads_everyone = true,
                Some(("toolset", name)) if !name.is_empty() => {
                    scope.toolsets.get_or_insert_default().push(name.to_owned());
                }
                Some(("server", name)) if !name.is_empty() => {
                    scope.servers.get_or_insert_default().push(name.to_owned());
                }
                Some(("language", name)) => {
                    let language = Language::parse(name).ok_or_else(invalid)?;
                    scope.languages.get_or_insert_default().push(language);
                }
                Some(("files", "none")) => scope.files = FileScope::None,
                Some(("files", "read")) => scope.files = FileScope::ReadOnly,
                Some(("limit", limit)) => scope.set_limit(limit).ok_or_else(invalid)?,
                _ => return Err(invalid()),
            }
        }
        scope.is_read_only = reads && !writes;
        Ok(scope)
    }

    fn set_limit(&mut self, limit: &str) -> Option<()> {
        let (name, value) = limit.split_once('=')?;
        let value: u32 = value.parse().ok()?;
        match name {
            "timeout-ms" if value > 0 => {
                self.timeout = Some(Duration::from_millis(value.into()));
            }
            "tool-calls" => self.tool_calls = Some(value),
            "requests-per-minute" if value > 0 => self.requests_per_minute = Some(value),
            _ => return None,
        }
        Some(())
    }

    /// True if the holder may look, but not run or change anything.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// True if the holder sees what others own.
    pub fn reads_everyone(&self) -> bool {
        self.reads_everyone
    }

    pub fn allows_toolset(&self, name: &str) -> bool {
        self.toolsets.as_ref().is_none_or(|allowed| allowed.iter().any(|set| set == name))
    }

    /// Returns the toolsets that the token names, if it names any.
    pub fn toolsets(&self) -> Option<&[String]> {
        self.toolsets.as_deref()
    }

    pub fn requests_per_minute(&self) -> Option<u32> {
        self.requests_per_minute
    }

    /// Returns the policy for the holder. It allows nothing that `policy` does not allow.
    ///
    /// THREAT[HTTP-3]: the scope is applied to the policy that every execution and call is checked
    /// against, not to the requests.
    pub fn narrow(&self, policy: &Policy) -> Policy {
        let mut narrow = policy.clone();
        if let Some(servers) = &self.servers {
            let list = servers.iter().map(|name| ToolPattern::server(name)).collect();
            narrow.tools = narrow.tools.narrowed_by(list);
        }
        if let Some(languages) = &self.languages {
            narrow.languages.retain(|language| languages.contains(language));
        }
        match self.files {
            FileScope::AsSet => {}
            FileScope::ReadOnly => narrow.files.is_writable = false,
            FileScope::None => narrow.files.allowed.clear(),
        }
        if let Some(timeout) = self.timeout {
            narrow.max_wall = narrow.max_wall.min(timeout);
            narrow.limits.wall = narrow.limits.wall.min(timeout);
        }
        if let Some(tool_calls) = self.tool_calls {
            narrow.limits.tool_calls = narrow.limits.tool_calls.min(tool_calls);
        }
        narrow
    }
}

#[cfg(test)]
mod tests;
