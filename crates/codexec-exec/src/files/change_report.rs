//! The report about a commit or a workspace: a bounded list of files in the order of the walk.

use std::io;
use std::path::Path;

use codexec_types::{Artifact, FileChanges, NotWritten};

/// Maximum number of listed files that were written, and of files that were not.
const MAX_WRITTEN: usize = 200;
const MAX_NOT_WRITTEN: usize = 50;

#[derive(Default)]
pub(crate) struct ChangeReport {
    changes: FileChanges,
    written: usize,
    not_written: usize,
}

impl ChangeReport {
    pub(crate) fn add_created(&mut self, path: &Path, bytes: u64) {
        if let Some(artifact) = self.make_artifact(path, bytes) {
            self.changes.created.push(artifact);
        }
    }

    pub(crate) fn add_modified(&mut self, path: &Path, bytes: u64) {
        if let Some(artifact) = self.make_artifact(path, bytes) {
            self.changes.modified.push(artifact);
        }
    }

    pub(crate) fn add_deleted(&mut self, path: &Path, bytes: u64) {
        if let Some(artifact) = self.make_artifact(path, bytes) {
            self.changes.deleted.push(artifact);
        }
    }

    pub(crate) fn add_held_back(&mut self, path: &Path, reason: &str) {
        if let Some(entry) = self.make_entry(path, reason) {
            self.changes.held_back.push(entry);
        }
    }

    pub(crate) fn add_conflict(&mut self, path: &Path, reason: &str) {
        if let Some(entry) = self.make_entry(path, reason) {
            self.changes.conflicts.push(entry);
        }
    }

    pub(crate) fn add_failed(&mut self, path: &Path, error: &io::Error) {
        self.add_conflict(path, &format!("it could not be written: {error}"));
    }

    pub(crate) fn into_changes(mut self) -> FileChanges {
        let changes = &mut self.changes;
        for list in [&mut changes.created, &mut changes.modified, &mut changes.deleted] {
            list.sort_by(|a, b| a.path.cmp(&b.path));
        }
        for list in [&mut changes.held_back, &mut changes.conflicts] {
            list.sort_by(|a, b| a.path.cmp(&b.path));
        }
        self.changes
    }

    fn make_artifact(&mut self, path: &Path, bytes: u64) -> Option<Artifact> {
        if self.written >= MAX_WRITTEN {
            self.changes.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(Artifact { path: path.display().to_string(), bytes })
    }

    fn make_entry(&mut self, path: &Path, reason: &str) -> Option<NotWritten> {
        if self.not_written >= MAX_NOT_WRITTEN {
            self.changes.left_out += 1;
            return None;
        }
        self.not_written += 1;
        Some(NotWritten { path: path.display().to_string(), reason: reason.to_owned() })
    }
}
