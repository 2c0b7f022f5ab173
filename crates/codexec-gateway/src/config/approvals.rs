//! What the user has said in Claude Code about the servers of a project's `.mcp.json`.
//!
//! THREAT[CFG-3]: whoever wrote the project wrote the settings in it too, so these only refuse.
//! The user's own `~/.claude.json` also approves, and only for the project that it names.

use std::path::Path;

use super::{Document, node::Node};

/// Names of servers that the user has approved or refused. Nothing said: neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approvals {
    approved: Vec<String>,
    refused: Vec<String>,
}

impl Approvals {
    /// Adds the refusals of a settings file; a broken file says nothing.
    pub fn add_settings(&mut self, settings: &Document) {
        if let Ok(root) = &settings.root {
            self.add_refusals(root);
        }
    }

    /// Adds what the user's own file keeps for the project in this directory.
    pub fn add_project(&mut self, claude_json: &Document, here: &Path) {
        let root = claude_json.root.as_ref().ok();
        let project = root.and_then(|root| root.get("projects")?.get(here.to_str()?));
        if let Some(project) = project {
            self.add_refusals(project);
            let approved = project.get("enabledMcpjsonServers");
            self.approved.extend(approved.map(Node::texts).unwrap_or_default());
        }
    }

    /// The names that are approved and not refused.
    pub fn approved(&self) -> impl Iterator<Item = &str> {
        self.approved.iter().map(String::as_str).filter(|name| self.objection(name).is_none())
    }

    /// Why a server of this name is not to be used.
    pub(super) fn objection(&self, name: &str) -> Option<&'static str> {
        let is_refused = self.refused.iter().any(|known| known == name);
        is_refused.then_some("it is refused in Claude Code's settings")
    }

    fn add_refusals(&mut self, table: &Node) {
        let refused = table.get("disabledMcpjsonServers");
        self.refused.extend(refused.map(Node::texts).unwrap_or_default());
    }
}
