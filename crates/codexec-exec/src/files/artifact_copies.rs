//! Copies of a guest's files in the directory of its execution.

use std::io::{self, Read as _};
use std::path::Path;

use codexec_files::private_files;

use super::dir_tree::{DirTree, FileKind, FileNode, MAX_DEPTH};
use super::ledger::CommitLedger;

/// Limits of the copies for one execution.
const MAX_BYTES: u64 = 64 << 20;
const MAX_FILES: usize = 1_000;

pub(crate) struct ArtifactCopies<'a> {
    folder: &'a Path,
    bytes_left: u64,
    files_left: usize,
}

/// The result of copying an entry.
#[derive(Clone, Copy)]
pub(crate) struct CopyResult {
    pub(crate) is_new: bool,
    pub(crate) is_complete: bool,
}

impl<'a> ArtifactCopies<'a> {
    pub(crate) fn new(folder: &'a Path) -> ArtifactCopies<'a> {
        ArtifactCopies { folder, bytes_left: MAX_BYTES, files_left: MAX_FILES }
    }

    /// Copies one file if it fits, and returns true if it did. Bytes are counted while they are copied, because the file may
    /// grow.
    pub(crate) fn copy_file(&mut self, tree: &DirTree, path: &Path) -> io::Result<bool> {
        let (mut source, node) = tree.open_file(path)?;
        if node.bytes > self.bytes_left || self.files_left == 0 {
            return Ok(false);
        }
        let target = self.folder.join(path);
        if let Some(parent) = target.parent() {
            private_files::make_folder(parent)?;
        }
        let mut target = private_files::create(&target)?;
        let copied = io::copy(&mut source.by_ref().take(self.bytes_left), &mut target)?;
        self.bytes_left -= copied.min(self.bytes_left);
        self.files_left -= 1;
        Ok(true)
    }

    /// Copies an entry and everything below it, as far as it is new since the last commit.
    pub(crate) fn copy_entry(
        &mut self,
        tree: &DirTree,
        path: &Path,
        node: &FileNode,
        ledger: &mut CommitLedger,
    ) -> CopyResult {
        let mut result = CopyResult { is_new: false, is_complete: true };
        self.copy_below(tree, path, node, ledger, 0, &mut result);
        result
    }

    fn copy_below(
        &mut self,
        tree: &DirTree,
        path: &Path,
        node: &FileNode,
        ledger: &mut CommitLedger,
        depth: usize,
        result: &mut CopyResult,
    ) {
        if node.kind == FileKind::Dir {
            let entries = tree.unlock(path, node).and_then(|()| tree.list(path));
            let (Ok(entries), true) = (entries, depth < MAX_DEPTH && self.files_left > 0) else {
                result.is_complete = false;
                return;
            };
            for (name, node) in entries {
                self.copy_below(tree, &path.join(name), &node, ledger, depth + 1, result);
            }
            return;
        }
        if ledger.is_done(path, node) {
            return;
        }
        ledger.note_held(path, node);
        result.is_new = true;
        if node.kind == FileKind::File {
            let copied = tree.unlock(path, node).and_then(|()| self.copy_file(tree, path));
            result.is_complete &= copied.unwrap_or_else(|error| {
                tracing::debug!(%error, "cannot copy an artifact");
                false
            });
        }
    }
}

impl CopyResult {
    /// Adds to the reason why an entry was not written that the artifacts do not have it either.
    pub(crate) fn describe(self, reason: &str) -> String {
        match self.is_complete {
            true => reason.to_owned(),
            false => format!("{reason}; it is too large to be kept as an artifact"),
        }
    }
}

#[cfg(test)]
mod tests;
