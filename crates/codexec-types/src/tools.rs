//! Which tools a guest may call.
//!
//! THREAT[POL-1]: decided on the host, at every call.
//! THREAT[POL-2]: on (server, tool) pairs, never on a joined string.

use crate::{Grant, Grants, ServerName};

/// Which (server, tool) pairs may be called: those that every list lets through.
///
/// THREAT[POL-3]: a list with nothing in it lets nothing through.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ToolFilter {
    lists: Vec<Vec<ToolPattern>>,
}

/// A glob (`*` is any run of characters) for the server, and one for the tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPattern {
    server: String,
    tool: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// No tool of this server may be called.
    Server,
    /// Others of its tools may.
    Tool,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error(
    "{0:?} is not a tool pattern; write it like \"github.get_issue\", \"github.*\", \
     \"mcp__github__*\" or \"*\""
)]
pub struct InvalidPattern(pub String);

impl ToolPattern {
    /// Reads `server.tool`, `server:tool`, `server/tool`, `mcp__server__tool` or `*`, each part
    /// with `*` as a wildcard. `servers` are the known ones: a `__` inside a server's name is
    /// told from the separator by them.
    pub fn parse(text: &str, servers: &[ServerName]) -> Result<ToolPattern, InvalidPattern> {
        if text == "*" {
            return Ok(ToolPattern::server("*"));
        }
        let invalid = || InvalidPattern(text.chars().take(200).collect());
        let (server, tool) = split(text, servers).ok_or_else(invalid)?;
        if server.is_empty() || tool.is_empty() {
            return Err(invalid());
        }
        Ok(ToolPattern { server: server.to_owned(), tool: tool.to_owned() })
    }

    /// Every tool of the servers that this glob names.
    pub fn server(glob: &str) -> ToolPattern {
        ToolPattern { server: glob.to_owned(), tool: "*".to_owned() }
    }

    /// True if the pattern is exactly this grant. No wildcard is: `*` and `codexec.*` let every
    /// function be called, and say nothing of grants.
    fn names(&self, grant: Grant) -> bool {
        self.server == Grant::SERVER && self.tool == grant.name()
    }

    fn matches(&self, server: &str, tool: &str) -> bool {
        glob(&self.server, server) && glob(&self.tool, tool)
    }

    fn matches_all(&self) -> bool {
        self.server == "*" && self.tool == "*"
    }
}

/// As people write it.
impl std::fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.matches_all() {
            true => f.write_str("*"),
            false => write!(f, "{}.{}", self.server, self.tool),
        }
    }
}

/// The grants that a list of patterns names.
pub(crate) fn named_grants(list: &[ToolPattern]) -> impl Iterator<Item = Grant> {
    Grant::ALL.into_iter().filter(|grant| list.iter().any(|pattern| pattern.names(*grant)))
}

impl ToolFilter {
    /// Lets everything through.
    pub fn all() -> ToolFilter {
        ToolFilter { lists: vec![vec![ToolPattern::server("*")]] }
    }

    pub fn only(list: Vec<ToolPattern>) -> ToolFilter {
        ToolFilter { lists: vec![list] }
    }

    /// What both let through: asking can only ever tighten.
    #[must_use]
    pub fn narrowed_by(mut self, list: Vec<ToolPattern>) -> ToolFilter {
        self.lists.push(list);
        self
    }

    /// What both let through.
    #[must_use]
    pub fn and(mut self, other: &ToolFilter) -> ToolFilter {
        if other.lists.is_empty() {
            return ToolFilter::default();
        }
        self.lists.extend(other.lists.iter().cloned());
        self
    }

    pub fn check(&self, server: &str, tool: &str) -> Result<(), Denied> {
        if !self.allows_server(server) {
            Err(Denied::Server)
        } else if self.each_list(|pattern| pattern.matches(server, tool)) {
            Ok(())
        } else {
            Err(Denied::Tool)
        }
    }

    /// Whether some tool of this server may be called.
    pub fn allows_server(&self, server: &str) -> bool {
        self.each_list(|pattern| glob(&pattern.server, server))
    }

    /// Those of these grants that no list leaves out.
    pub fn narrow(&self, grants: Grants) -> Grants {
        grants.iter().filter(|grant| self.check(Grant::SERVER, grant.name()).is_ok()).collect()
    }

    /// The lists of patterns, for a record: a call has to match a pattern of each. Lists that
    /// let everything through, and repeated ones, are left out where others remain.
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
            // A filter without a list lets nothing through.
            (true, true) => vec![Vec::new()],
            (false, _) => lists,
        }
    }

    fn each_list(&self, test: impl Fn(&ToolPattern) -> bool) -> bool {
        !self.lists.is_empty() && self.lists.iter().all(|list| list.iter().any(&test))
    }
}

fn split<'a>(text: &'a str, servers: &[ServerName]) -> Option<(&'a str, &'a str)> {
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

/// Linear in the text for each `*`: no pattern can make it slow.
fn glob(pattern: &str, text: &str) -> bool {
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
