//! Which tools a guest may call.
//!
//! THREAT[POL-1]: decided on the host, at every call.
//! THREAT[POL-2]: on (server, tool) pairs, never on a joined string.

use crate::ServerName;

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

    fn matches(&self, server: &str, tool: &str) -> bool {
        glob(&self.server, server) && glob(&self.tool, tool)
    }
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
