//! Which servers of a project's `.mcp.json` the user lets Claude Code start. Whoever wrote the
//! project wrote that file too, so it is not the user's word by itself: THREAT[CFG-3].

use std::path::Path;

use super::{Document, node::Node};

/// Nothing said: what a project names is used, as by whoever starts a program in its directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approvals {
    /// Somebody has approved some; what is not among them waits.
    approved: Option<Vec<String>>,
    refused: Vec<String>,
    is_all: bool,
}

impl Approvals {
    /// Adds what Claude Code's settings say; a broken file says nothing.
    pub fn add_settings(&mut self, settings: &Document) {
        if let Ok(root) = &settings.root {
            self.add(root);
        }
    }

    /// Adds what its own file keeps for the project in this directory.
    pub fn add_project(&mut self, claude_json: &Document, here: &Path) {
        let root = claude_json.root.as_ref().ok();
        let project = root.and_then(|root| root.get("projects")?.get(here.to_str()?));
        if let Some(project) = project {
            self.add(project);
        }
    }

    fn add(&mut self, table: &Node) {
        let names = |key: &str| table.get(key).map(Node::texts).unwrap_or_default();
        let approved = names("enabledMcpjsonServers");
        if !approved.is_empty() {
            self.approved.get_or_insert_default().extend(approved);
        }
        self.refused.extend(names("disabledMcpjsonServers"));
        self.is_all |= table.get("enableAllProjectMcpServers").is_some_and(|node| node.is(true));
    }

    /// Why a server of this name is not to be used.
    pub(super) fn objection(&self, name: &str) -> Option<&'static str> {
        let has = |names: &[String]| names.iter().any(|known| known == name);
        if has(&self.refused) {
            return Some("it is refused in Claude Code's settings");
        }
        match &self.approved {
            Some(approved) if !self.is_all && !has(approved) => {
                Some("it is not among those you approved in Claude Code")
            }
            Some(_) | None => None,
        }
    }
}
