//! Where in a file the servers stand, and what the file says about them elsewhere.

use super::{
    Approvals, Client, Parsed, Reach, Scope,
    dialect::{Dialect, MCPPROXY},
    node::{Node, Tree},
};

/// A table of servers.
pub(super) struct Section<'a> {
    pub(super) entries: Vec<(&'a str, &'a Node)>,
    /// How they are written.
    pub(super) dialect: &'static Dialect,
    /// Names that the client is told not to use.
    off: Vec<String>,
    /// If not empty: only these are.
    only: Vec<String>,
    approvals: Option<&'a Approvals>,
}

impl<'a> Section<'a> {
    fn plain(entries: Vec<(&'a str, &'a Node)>, dialect: &'static Dialect) -> Section<'a> {
        Section { entries, dialect, off: Vec::new(), only: Vec::new(), approvals: None }
    }

    /// Why a server of this name is not to be used.
    pub(super) fn objection(&self, name: &str) -> Option<&'static str> {
        let has = |names: &[String]| names.iter().any(|known| known == name);
        if has(&self.off) || (!self.only.is_empty() && !has(&self.only)) {
            return Some("it is switched off there");
        }
        self.approvals?.objection(name)
    }
}

pub(super) fn section<'a>(
    root: &'a Node,
    scope: &Scope<'a>,
    parsed: &mut Parsed,
) -> Option<Section<'a>> {
    let dialect = Dialect::of(scope.client);
    let key = dialect.root;
    let project = scope.world.here.and_then(|here| root.get("projects")?.get(here.to_str()?));
    let is_bare = scope.client == Client::Shared && root.get(key).is_none();
    let table = match scope.reach {
        Reach::Local => project.and_then(|project| project.get(key)),
        // One file, one server: it is called as the file is.
        _ if is_bare && is_entry(root) => return bare(root, scope),
        // A file in TOML may write the key as Codex does.
        Reach::Named => root.get(key).or_else(|| root.get("mcp_servers")),
        _ => root.get(key),
    };
    let Some(table) = table else {
        if scope.reach == Reach::Named {
            parsed.tell(scope, 1, None, format!("it has no `{key}`"));
            parsed.is_broken = true;
        }
        return None;
    };
    if matches!(scope.client, Client::Named | Client::Mcpproxy)
        && let Tree::List(items) = &table.value
    {
        let entries = listed(items, scope, parsed);
        return Some(Section::plain(entries, &MCPPROXY));
    }
    let Some(entries) = table.entries() else {
        parsed.tell(scope, table.line, None, format!("`{key}` is not an object"));
        parsed.is_broken = scope.reach == Reach::Named;
        return None;
    };
    let mut section = Section::plain(entries, dialect);
    match scope.client {
        Client::ClaudeCode => {
            let off = project.and_then(|project| project.get("disabledMcpServers"));
            section.off = off.map(Node::texts).unwrap_or_default();
            section.approvals = (scope.reach == Reach::Project).then_some(scope.approvals);
        }
        Client::Gemini => {
            let list = |key: &str| root.get("mcp").and_then(|mcp| mcp.get(key)).map(Node::texts);
            section.off = list("excluded").unwrap_or_default();
            section.only = list("allowed").unwrap_or_default();
        }
        _ => {}
    }
    Some(section)
}

fn is_entry(root: &Node) -> bool {
    ["command", "url"].into_iter().any(|key| root.get(key).is_some())
}

fn bare<'a>(root: &'a Node, scope: &Scope<'a>) -> Option<Section<'a>> {
    let name = scope.source.file_stem()?.to_str()?;
    Some(Section::plain(vec![(name, root)], Dialect::of(scope.client)))
}

/// MCPProxy: a list, in which each says its own name.
fn listed<'a>(
    items: &'a [Node],
    scope: &Scope<'_>,
    parsed: &mut Parsed,
) -> Vec<(&'a str, &'a Node)> {
    let mut entries = Vec::new();
    for item in items {
        match item.get("name").and_then(Node::text) {
            Some(name) => entries.push((name, item)),
            None => {
                let what = "a server has no `name`; write what it is called".to_owned();
                // About one entry, not about the file.
                parsed.tell(scope, item.line, Some(""), what);
            }
        }
    }
    entries
}
