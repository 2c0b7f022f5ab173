//! The user's decisions in Claude Code about the servers of a project's `.mcp.json`.
//!
//! THREAT[CFG-3]: the project's author also wrote the settings in it, so these can only refuse.
//! The user's own `~/.claude.json` can also approve, and only for the project that it names.

use std::path::Path;

use super::{ConfigDocument, node::ConfigNode};

/// Names of servers that the user has approved or refused. A name can be in neither list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClaudeApprovals {
    approved: Vec<String>,
    refused: Vec<String>,
}

impl ClaudeApprovals {
    /// Adds the refusals of a settings file; ignores an invalid file.
    pub(crate) fn add_settings(&mut self, settings: &ConfigDocument) {
        if let Ok(root) = &settings.root {
            self.add_refusals(root);
        }
    }

    /// Adds the decisions that the user's own file has for the project in this directory.
    pub(crate) fn add_project(&mut self, claude_json: &ConfigDocument, here: &Path) {
        let root = claude_json.root.as_ref().ok();
        let project = root.and_then(|root| root.get("projects")?.get(here.to_str()?));
        if let Some(project) = project {
            self.add_refusals(project);
            let approved = project.get("enabledMcpjsonServers");
            self.approved.extend(approved.map(ConfigNode::texts).unwrap_or_default());
        }
    }

    /// Returns the names that are approved and not refused.
    pub(crate) fn approved_names(&self) -> impl Iterator<Item = &str> {
        self.approved.iter().map(String::as_str).filter(|name| self.refusal_reason(name).is_none())
    }

    /// Returns why a server of this name is disabled, if it is.
    pub(super) fn refusal_reason(&self, name: &str) -> Option<&'static str> {
        let is_refused = self.refused.iter().any(|known| known == name);
        is_refused.then_some("it is refused in Claude Code's settings")
    }

    fn add_refusals(&mut self, table: &ConfigNode) {
        let refused = table.get("disabledMcpjsonServers");
        self.refused.extend(refused.map(ConfigNode::texts).unwrap_or_default());
    }
}
