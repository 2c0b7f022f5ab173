//! Where in a file the servers stand, and what the file says about them elsewhere.

use super::{Approvals, Client, Parsed, Reach, Scope, dialect::Dialect, node::Node};

/// A table of servers.
pub(super) struct Section<'a> {
    pub(super) entries: Vec<(&'a str, &'a Node)>,
    /// Names that the client is told not to use.
    off: Vec<String>,
    /// If not empty: only these are.
    only: Vec<String>,
    approvals: Option<&'a Approvals>,
}

impl Section<'_> {
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
    let key = Dialect::of(scope.client).root;
    let project = scope.world.here.and_then(|here| root.get("projects")?.get(here.to_str()?));
    let is_bare = scope.client == Client::Shared && root.get(key).is_none();
    let table = match scope.reach {
        Reach::Local => project.and_then(|project| project.get(key)),
        // One file, one server: it is called as the file is.
        _ if is_bare && is_entry(root) => return bare(root, scope),
        _ => root.get(key),
    };
    let Some(table) = table else {
        if scope.reach == Reach::Named {
            parsed.tell(scope, 1, None, format!("it has no `{key}`"));
            parsed.is_broken = true;
        }
        return None;
    };
    let Some(entries) = table.entries() else {
        parsed.tell(scope, table.line, None, format!("`{key}` is not an object"));
        parsed.is_broken = scope.reach == Reach::Named;
        return None;
    };
    let mut section = Section { entries, off: Vec::new(), only: Vec::new(), approvals: None };
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
    let entries = vec![(name, root)];
    Some(Section { entries, off: Vec::new(), only: Vec::new(), approvals: None })
}
