//! Which entries may start: what the user has approved, here or in Claude Code.

use std::path::{Path, PathBuf};

use codexec_gateway::{Approvals, Client, Holds, Parsed, Place, Reach};

use super::{Documents, Sources, document};

impl Sources {
    /// What the user has said in Claude Code about the servers of this project.
    pub(super) fn approvals(&self, documents: &mut Documents) -> Approvals {
        let mut approvals = Approvals::default();
        let Some(here) = &self.here else { return approvals };
        if !self.rules.discovery.clients.contains(&Client::ClaudeCode) {
            return approvals;
        }
        let read = |path: PathBuf, reach| Place {
            client: Client::ClaudeCode,
            reach,
            path,
            holds: Holds::File,
        };
        for path in self.whereabouts().claude_settings() {
            if let Some(Ok(settings)) = document(&read(path, Reach::User)) {
                approvals.add_settings(&settings);
            }
        }
        for place in self.places().into_iter().filter(|place| place.reach == Reach::Local) {
            // A file that guests may write is not the user's word.
            if self.is_guest_writable(&place.path) {
                continue;
            }
            let document = documents
                .entry((place.path.clone(), place.client))
                .or_insert_with(|| document(&place));
            if let Some(Ok(document)) = document {
                approvals.add_project(document, here);
            }
        }
        approvals
    }

    /// Lets start what is approved, of what each file gave.
    pub(super) fn settle(&self, files: &mut [(Place, Parsed)], approvals: &Approvals) {
        let Some(approved) = &self.rules.approvals else { return };
        for (_, parsed) in &mut *files {
            approved.settle(parsed);
        }
        let Some(here) = self.here.as_ref().filter(|_| self.rules.discovery.has_project_files)
        else {
            return;
        };
        let file = here.join(".mcp.json");
        let given = files.iter().find(|(place, _)| place.path == file).map(|(_, parsed)| parsed);
        let nothing = Parsed::default();
        approved.note_absent(&file, approvals.approved(), given.unwrap_or(&nothing));
    }

    /// Whether guests may have written this file.
    pub(super) fn is_guest_writable(&self, path: &Path) -> bool {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let read_link = |link: &Path| std::fs::read_link(link).ok();
        self.rules.guest_paths.directory_of(&whole, &read_link).is_some()
    }
}
