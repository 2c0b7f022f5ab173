//! Copies of a guest's files in the directory of its execution.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

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

impl<'a> ArtifactCopies<'a> {
    pub(crate) fn new(folder: &'a Path) -> ArtifactCopies<'a> {
        ArtifactCopies { folder, bytes_left: MAX_BYTES, files_left: MAX_FILES }
    }

    /// Copies one file if it fits. Bytes are counted while they are copied, because the file may
    /// grow.
    pub(crate) fn copy_file(&mut self, tree: &DirTree, path: &Path) -> io::Result<()> {
        let (mut source, node) = tree.open_file(path)?;
        if node.bytes > self.bytes_left || self.files_left == 0 {
            return Ok(());
        }
        let target = self.folder.join(path);
        if let Some(parent) = target.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let mut target = File::options().write(true).create_new(true).mode(0o600).open(target)?;
        let copied = io::copy(&mut source.by_ref().take(self.bytes_left), &mut target)?;
        self.bytes_left -= copied.min(self.bytes_left);
        self.files_left -= 1;
        Ok(())
    }

    /// Copies an entry and everything below it. Returns true if any of it is new since the last
    /// commit.
    pub(crate) fn copy_entry(
        &mut self,
        tree: &DirTree,
        path: &Path,
        node: &FileNode,
        ledger: &mut CommitLedger,
    ) -> bool {
        self.copy_below(tree, path, node, ledger, 0)
    }

    fn copy_below(
        &mut self,
        tree: &DirTree,
        path: &Path,
        node: &FileNode,
        ledger: &mut CommitLedger,
        depth: usize,
    ) -> bool {
        if node.kind == FileKind::Dir {
            if depth >= MAX_DEPTH || self.files_left == 0 {
                return false;
            }
            let Ok(entries) = tree.unlock(path, node).and_then(|()| tree.list(path)) else {
                return false;
            };
            return entries.iter().fold(false, |is_new, (name, node)| {
                self.copy_below(tree, &path.join(name), node, ledger, depth + 1) || is_new
            });
        }
        if ledger.is_done(path, node) {
            return false;
        }
        ledger.note_held(path, node);
        if node.kind == FileKind::File {
            let copied = tree.unlock(path, node).and_then(|()| self.copy_file(tree, path));
            if let Err(error) = copied {
                tracing::debug!(%error, "cannot copy an artifact");
            }
        }
        true
    }
}
