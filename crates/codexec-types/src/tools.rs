//! The filter that decides which tools a guest may call.
//!
//! THREAT[POL-1]: decided on the host, at every call.
//! THREAT[POL-2]: by (server, tool) pairs, never by a joined string.

use crate::{Grant, Grants, ServerName};

/// A filter for (server, tool) pairs. A pair passes if every list has a pattern that matches it.
///
/// THREAT[POL-3]: an empty list matches nothing.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ToolFilter {
    lists: Vec<Vec<ToolPattern>>,
}

/// A pair of globs, for the server and for the tool (`*` matches any characters).
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPattern {
    server: String,
    tool: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolDenied {
    /// No tool of this server may be called.
    Server,
    /// The server has other tools that may be called.
    Tool,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error(
    "{0:?} is not a tool pattern; write it like \"github.get_issue\", \"github.*\", \
     \"mcp__github__*\" or \"*\""
)]
pub struct InvalidPattern(pub String);

impl ToolPattern {
    /// Parses `server.tool`, `server:tool`, `server/tool`, `mcp__server__tool` or `*`, each part
    /// with `*` as a wildcard. `servers` are the known servers; they tell a `__` inside a server's
    /// name from the separator.
    pub fn parse(text: &str, servers: &[ServerName]) -> Result<ToolPattern, InvalidPattern> {
        if text == "*" {
            return Ok(ToolPattern::server("*"));
        }
        let invalid = || InvalidPattern(text.chars().take(200).collect());
        let (server, tool) = split_server_and_tool(text, servers).ok_or_else(invalid)?;
        if server.is_empty() || tool.is_empty() {
            return Err(invalid());
        }
        Ok(ToolPattern { server: server.to_owned(), tool: tool.to_owned() })
    }

    /// Matches every tool of the servers that match this glob.
    pub fn server(glob: &str) -> ToolPattern {
        ToolPattern { server: glob.to_owned(), tool: "*".to_owned() }
    }

    /// True if the pattern is exactly this grant. Wildcards never are: `*` and `codexec.*` allow
    /// every function, but give no grants.
    fn is_grant(&self, grant: Grant) -> bool {
        self.server == Grant::SERVER && self.tool == grant.name()
    }

    fn matches(&self, server: &str, tool: &str) -> bool {
        matches_glob(&self.server, server) && matches_glob(&self.tool, tool)
    }

    fn matches_all(&self) -> bool {
        self.server == "*" && self.tool == "*"
    }
}

/// Formats the pattern as people write it.
impl std::fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.matches_all() {
            true => f.write_str("*"),
            false => write!(f, "{}.{}", self.server, self.tool),
        }
    }
}

/// Returns the grants that a list of patterns names.
pub(crate) fn grants_named_in(list: &[ToolPattern]) -> impl Iterator<Item = Grant> {
    Grant::ALL.into_iter().filter(|grant| list.iter().any(|pattern| pattern.is_grant(*grant)))
}

impl ToolFilter {
    /// Allows everything.
    pub fn all() -> ToolFilter {
        ToolFilter { lists: vec![vec![ToolPattern::server("*")]] }
    }

    pub fn only(list: Vec<ToolPattern>) -> ToolFilter {
        ToolFilter { lists: vec![list] }
    }

    /// Adds a list that calls must match as well. Can only make the filter stricter.
    #[must_use]
    pub fn narrowed_by(mut self, list: Vec<ToolPattern>) -> ToolFilter {
        self.lists.push(list);
        self
    }

    /// Allows only what both filters allow.
    #[must_use]
    pub fn and(mut self, other: &ToolFilter) -> ToolFilter {
        if other.lists.is_empty() {
            return ToolFilter::default();
        }
        self.lists.extend(other.lists.iter().cloned());
        self
    }

    pub fn check(&self, server: &str, tool: &str) -> Result<(), ToolDenied> {
        if !self.allows_server(server) {
            Err(ToolDenied::Server)
        } else if self.matches_in_every_list(|pattern| pattern.matches(server, tool)) {
            Ok(())
        } else {
            Err(ToolDenied::Tool)
        }
    }

    /// True if some tool of this server may be called.
    pub fn allows_server(&self, server: &str) -> bool {
        self.matches_in_every_list(|pattern| matches_glob(&pattern.server, server))
    }

    /// Returns the grants that every list allows.
    pub fn narrow_grants(&self, grants: Grants) -> Grants {
        grants.iter().filter(|grant| self.check(Grant::SERVER, grant.name()).is_ok()).collect()
    }

    /// Returns the lists of patterns, for a record: a call has to match a pattern of each. Lists
    /// that allow everything, and repeated ones, are left out if others remain.
    pub fn lists(&self) -> Vec<Vec<String>> {
        let mut lists: Vec<Vec<String>> = Vec::new();
        let narrowing = |list: &&Vec<ToolPattern>| !list.iter().any(ToolPattern::matches_all);
        for list in self.lists.iter().filter(narrowing) {
            let list = list.iter().map(ToolPattern::to_string).collect();
            if !lists.contains(&list) {
                lists.push(list);
            }
        }
        match (lists.is_empty(), self.lists.is_empty()) {
            (true, false) => vec![vec!["*".to_owned()]],
            // A filter without lists allows nothing.
            (true, true) => vec![Vec::new()],
            (false, _) => lists,
        }
    }

    fn matches_in_every_list(&self, test: impl Fn(&ToolPattern) -> bool) -> bool {
        !self.lists.is_empty() && self.lists.iter().all(|list| list.iter().any(&test))
    }
}

fn split_server_and_tool<'a>(text: &'a str, servers: &[ServerName]) -> Option<(&'a str, &'a str)> {
    let Some(joined) = text.strip_prefix("mcp__") else {
        return text.split_once([':', '.', '/']);
    };
    let known = servers
        .iter()
        .filter_map(|server| {
            let tool = joined.strip_prefix(server.as_str())?.strip_prefix("__")?;
            Some((joined.get(..server.as_str().len())?, tool))
        })
        .max_by_key(|(server, _)| server.len());
    known.or_else(|| joined.split_once("__"))
}

/// Linear in the text for each `*`, so no pattern can make it slow.
fn matches_glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        if let Some(middle) = last.replace(part) {
            match rest.find(middle) {
                Some(at) => rest = rest.get(at + middle.len()..).unwrap_or_default(),
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[cfg(test)]
mod tests;
