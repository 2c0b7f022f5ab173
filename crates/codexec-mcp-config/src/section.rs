//! Finds the table of servers in a config file, and the lists elsewhere in it that disable them.

use super::{
    ClaudeApprovals, ConfigOwner, ConfigScope, ConfigSource, ParsedConfig,
    dialect::{Dialect, MCPPROXY},
    node::{ConfigNode, ConfigValue},
    parse::DISABLED_IN_FILE,
};

/// The table of servers in a config file.
pub(super) struct Section<'a> {
    pub(super) entries: Vec<(&'a str, &'a ConfigNode)>,
    /// The format of the entries.
    pub(super) dialect: &'static Dialect,
    /// Names of disabled servers.
    disabled: Vec<String>,
    /// If not empty, all other servers are disabled.
    only: Vec<String>,
    approvals: Option<&'a ClaudeApprovals>,
}

impl<'a> Section<'a> {
    fn new(entries: Vec<(&'a str, &'a ConfigNode)>, dialect: &'static Dialect) -> Section<'a> {
        Section { entries, dialect, disabled: Vec::new(), only: Vec::new(), approvals: None }
    }

    /// Returns why a server of this name is disabled, if it is.
    pub(super) fn disabled_reason(&self, name: &str) -> Option<&'static str> {
        let has = |names: &[String]| names.iter().any(|known| known == name);
        if has(&self.disabled) || (!self.only.is_empty() && !has(&self.only)) {
            return Some(DISABLED_IN_FILE);
        }
        self.approvals?.refusal_reason(name)
    }
}

/// Returns the file's table of servers. A missing table is a problem only in a file that the user
/// named.
pub(super) fn find_section<'a>(
    root: &'a ConfigNode,
    scope: &ConfigSource<'a>,
    parsed: &mut ParsedConfig,
) -> Option<Section<'a>> {
    let dialect = Dialect::of(scope.client);
    let key = dialect.root;
    let project = scope.world.here.and_then(|here| root.get("projects")?.get(here.to_str()?));
    let is_bare = scope.client == ConfigOwner::Shared && root.get(key).is_none();
    let table = match scope.reach {
        ConfigScope::Local => project.and_then(|project| project.get(key)),
        // The file is a single entry; the server has the file's name.
        _ if is_bare && is_entry(root) => return single_entry(root, scope),
        // A file in TOML may write the key as Codex does.
        ConfigScope::Named => root.get(key).or_else(|| root.get("mcp_servers")),
        _ => root.get(key),
    };
    let Some(table) = table else {
        if scope.reach == ConfigScope::Named {
            parsed.add_problem(scope, 1, None, format!("it has no `{key}`"));
            parsed.is_broken = true;
        }
        return None;
    };
    if matches!(scope.client, ConfigOwner::Named | ConfigOwner::Mcpproxy)
        && let ConfigValue::List(items) = &table.value
    {
        let entries = read_list(items, scope, parsed);
        return Some(Section::new(entries, &MCPPROXY));
    }
    let Some(entries) = table.entries() else {
        parsed.add_problem(scope, table.line, None, format!("`{key}` is not an object"));
        parsed.is_broken = scope.reach == ConfigScope::Named;
        return None;
    };
    let mut section = Section::new(entries, dialect);
    match scope.client {
        ConfigOwner::ClaudeCode => {
            let disabled = project.and_then(|project| project.get("disabledMcpServers"));
            section.disabled = disabled.map(ConfigNode::texts).unwrap_or_default();
            section.approvals = (scope.reach == ConfigScope::Project).then_some(scope.approvals);
        }
        ConfigOwner::Gemini => {
            let list =
                |key: &str| root.get("mcp").and_then(|mcp| mcp.get(key)).map(ConfigNode::texts);
            section.disabled = list("excluded").unwrap_or_default();
            section.only = list("allowed").unwrap_or_default();
        }
        _ => {}
    }
    Some(section)
}

fn is_entry(root: &ConfigNode) -> bool {
    ["command", "url"].into_iter().any(|key| root.get(key).is_some())
}

fn single_entry<'a>(root: &'a ConfigNode, scope: &ConfigSource<'a>) -> Option<Section<'a>> {
    let name = scope.source.file_stem()?.to_str()?;
    Some(Section::new(vec![(name, root)], Dialect::of(scope.client)))
}

/// Reads the servers of MCPProxy: a list, in which each entry has its name.
fn read_list<'a>(
    items: &'a [ConfigNode],
    scope: &ConfigSource<'_>,
    parsed: &mut ParsedConfig,
) -> Vec<(&'a str, &'a ConfigNode)> {
    let mut entries = Vec::new();
    for item in items {
        match item.get("name").and_then(ConfigNode::text) {
            Some(name) => entries.push((name, item)),
            None => {
                let what = "a server has no `name`; add one".to_owned();
                // The empty name marks a problem of one entry, not of the file.
                parsed.add_problem(scope, item.line, Some(""), what);
            }
        }
    }
    entries
}
