//! The last part of a commit: deletions, and entries that replace an entry of another kind.

use std::io;
use std::path::{Path, PathBuf};

use super::{CHANGED, Commit, Deletion, EntryResult, Folder, MOVED, NOT_DELETED, entry_writer};
use crate::files::dir_tree::{FileKind, FileNode};
use crate::files::moves::UnwrittenFiles;

const MOVED_INSIDE: &str = "the code moved the file into a folder of the same name";

/// The result of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removal {
    Removed,
    /// The entry, or an entry below it, was changed by somebody else.
    Changed,
    /// The entry stays for another reason, which is reported.
    Kept,
}

impl Commit<'_> {
    /// Schedules the removal of entries that the guest's new folder lacks, unless another process
    /// changed the user's folder meanwhile.
    pub(super) fn clear_folder_later(&mut self, path: &Path, there: &FileNode) {
        if there.stamp.changed < self.since || self.ledger.is_ours(path, there) {
            self.progress.deletions.push(Deletion::OldContent(path.to_owned()));
        }
    }

    pub(super) fn delete_entries(&mut self) {
        while let Some((path, node, depth)) = self.progress.replacements.pop() {
            // An entry that is processed later may be the new place of an entry that is removed here.
            self.progress.displaced.scan(self.upper, self.target);
            if let Err(error) = self.replace_entry(&path, &node, depth) {
                self.report_failure(&path, &error);
            }
        }
        let deletions = std::mem::take(&mut self.progress.deletions);
        if deletions.is_empty() {
            return;
        }
        let unwritten = self.collect_unwritten(&self.progress.unwritten);
        for deletion in deletions {
            let (path, done) = match &deletion {
                Deletion::Entry(path, node) => (path, self.delete_entry(path, node, &unwritten)),
                Deletion::OldContent(path) => (path, self.clear_folder(path, &unwritten)),
            };
            if let Err(error) = done {
                self.report.add_failed(path, &error);
            }
        }
    }

    fn collect_unwritten(&self, paths: &[PathBuf]) -> UnwrittenFiles {
        UnwrittenFiles::collect(self.upper, self.target, paths, self.since)
    }

    /// Puts a folder where the user has a file, or the other way round.
    fn replace_entry(&mut self, path: &Path, node: &FileNode, depth: usize) -> io::Result<()> {
        if let Some(there) = self.target.find(path)? {
            let inside = self.collect_unwritten(&[path.to_owned()]);
            if node.kind == FileKind::Dir && inside.may_include(&there) {
                self.report_conflict(path, node, MOVED_INSIDE);
                return Ok(());
            }
            let unwritten = self.collect_unwritten(&self.progress.unwritten);
            if self.remove_entry(path, &there, &unwritten)? != Removal::Removed {
                self.report_conflict(path, node, CHANGED);
                return Ok(());
            }
        }
        match node.kind {
            FileKind::Dir => {
                self.make_dirs(path)?;
                self.ledger.note_made(path);
                let folder = Folder { is_replaced: true, is_stashed: false, depth: depth + 1 };
                self.commit_folder(path, folder);
                Ok(())
            }
            FileKind::Link => self.commit_link(path, node),
            _ => self.commit_file(path, node),
        }
    }

    fn delete_entry(
        &mut self,
        path: &Path,
        node: &FileNode,
        unwritten: &UnwrittenFiles,
    ) -> io::Result<()> {
        if self.ledger.is_done(path, node) {
            return Ok(());
        }
        if let Some(there) = self.target.find(path)?
            && self.remove_entry(path, &there, unwritten)? == Removal::Changed
        {
            self.report.add_conflict(path, NOT_DELETED);
        }
        self.ledger.note_removed(path, node);
        Ok(())
    }

    fn clear_folder(&mut self, path: &Path, unwritten: &UnwrittenFiles) -> io::Result<()> {
        for (name, node) in self.target.list(path)? {
            let path = path.join(name);
            if self.upper.find(&path)?.is_none()
                && self.remove_entry(&path, &node, unwritten)? == Removal::Changed
            {
                self.report.add_conflict(&path, NOT_DELETED);
            }
        }
        Ok(())
    }

    /// Removes what the guest removed, except entries that another process changed or added, names
    /// that are held back, and sources of moves whose destination was not written.
    fn remove_entry(
        &mut self,
        path: &Path,
        there: &FileNode,
        unwritten: &UnwrittenFiles,
    ) -> io::Result<Removal> {
        if there.stamp.changed >= self.since && !self.ledger.is_ours(path, there) {
            return Ok(Removal::Changed);
        }
        if let Some(reason) = self.held_back.find_deletion_reason(path, there) {
            self.report.add_held_back(path, &format!("not deleted: {reason}"));
            return Ok(Removal::Kept);
        }
        if unwritten.may_include(there) {
            self.report.add_conflict(path, MOVED);
            return Ok(Removal::Kept);
        }
        if there.kind != FileKind::Dir {
            if entry_writer::remove(self.target, path, there)? == EntryResult::Conflict {
                return Ok(Removal::Changed);
            }
            self.report.add_deleted(path, there.bytes);
            return Ok(Removal::Removed);
        }
        let entries = self.target.list(path)?;
        let is_empty = entries.is_empty();
        let mut all = Removal::Removed;
        for (name, node) in entries {
            match self.remove_entry(&path.join(name), &node, unwritten)? {
                Removal::Removed => {}
                Removal::Changed => all = Removal::Changed,
                Removal::Kept if all == Removal::Removed => all = Removal::Kept,
                Removal::Kept => {}
            }
        }
        if all == Removal::Removed {
            if entry_writer::remove_dir(self.target, path)? == EntryResult::Conflict {
                return Ok(Removal::Changed);
            }
            if is_empty {
                self.report.add_deleted(&path.join(""), 0);
            }
        }
        Ok(all)
    }
}
