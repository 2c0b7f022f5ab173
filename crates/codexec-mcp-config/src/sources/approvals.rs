//! Approvals of servers, by `codexec servers approve` or in Claude Code.

use std::path::{Path, PathBuf};

use super::{Documents, ServerSources, files::read_document};
use crate::{
    ConfigOwner, ParsedConfig,
    claude_approvals::ClaudeApprovals,
    client::ConfigScope,
    locations::{ConfigLocation, LocationKind},
};

impl ServerSources {
    /// Reads which of this project's servers the user approved or refused in Claude Code.
    pub(super) fn read_claude_approvals(&self, documents: &mut Documents) -> ClaudeApprovals {
        let mut approvals = ClaudeApprovals::default();
        let Some(here) = &self.host.here else { return approvals };
        if !self.rules.discovery.clients.contains(&ConfigOwner::ClaudeCode) {
            return approvals;
        }
        let read = |path: PathBuf, reach| ConfigLocation {
            client: ConfigOwner::ClaudeCode,
            reach,
            path,
            holds: LocationKind::File,
        };
        for path in self.whereabouts().claude_settings() {
            if let Some(Ok(settings)) = read_document(&read(path, ConfigScope::User)) {
                approvals.add_settings(&settings);
            }
        }
        for place in
            self.source_files().into_iter().filter(|place| place.reach == ConfigScope::Local)
        {
            // A file that guests may write cannot approve anything.
            if self.is_guest_writable(&place.path) {
                continue;
            }
            let document = documents
                .entry((place.path.clone(), place.client))
                .or_insert_with(|| read_document(&place));
            if let Some(Ok(document)) = document {
                approvals.add_project(document, here);
            }
        }
        approvals
    }

    /// Marks the approved entries of each file as ready to start.
    pub(super) fn apply_approvals(
        &self,
        files: &mut [(ConfigLocation, ParsedConfig)],
        approvals: &ClaudeApprovals,
    ) {
        let Some(approved) = &self.rules.approvals else { return };
        for (_, parsed) in &mut *files {
            approved.apply(parsed);
        }
        let Some(here) = self.host.here.as_ref().filter(|_| self.rules.discovery.has_project_files)
        else {
            return;
        };
        let file = here.join(".mcp.json");
        let given = files.iter().find(|(place, _)| place.path == file).map(|(_, parsed)| parsed);
        let nothing = ParsedConfig::default();
        approved.record_absent(&file, approvals.approved_names(), given.unwrap_or(&nothing));
    }

    /// Returns true if guests may have written this file.
    pub(super) fn is_guest_writable(&self, path: &Path) -> bool {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let read_link = |link: &Path| std::fs::read_link(link).ok();
        self.rules.guest_paths.find_writable_dir(&whole, &read_link).is_some()
    }
}
