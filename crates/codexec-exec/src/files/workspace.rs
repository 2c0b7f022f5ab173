//! The guest's own temporary workspace: lists its files, and copies them before it is deleted.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use codexec_types::FileChanges;

use super::artifact_copies::ArtifactCopies;
use super::change_report::ChangeReport;
use super::dir_tree::{DirTree, FileKind, FileNode, MAX_DEPTH};

/// Maximum number of files that are listed. A workspace has at most `limits.disk-files`.
const MAX_SEEN: usize = 50_000;

/// All files of a workspace at one moment, by relative path.
pub(crate) type WorkspaceFiles = BTreeMap<PathBuf, FileNode>;

/// Returns the changes in a workspace since `before`, and its files now. New and changed files are
/// copied to `keep` as far as they fit.
///
/// THREAT[FIL-6]: the guest may change everything during the walk.
pub(crate) fn collect(
    workspace: OwnedFd,
    before: &WorkspaceFiles,
    keep: &Path,
) -> (FileChanges, WorkspaceFiles) {
    let tree = DirTree::new(workspace);
    let after = list_files(&tree, false);
    let (mut report, mut copies) = (ChangeReport::default(), ArtifactCopies::new(keep));
    for (path, now) in &after {
        match before.get(path) {
            None => report.add_created(path, now.bytes),
            Some(then) if then != now => report.add_modified(path, now.bytes),
            Some(_) => continue,
        }
        if now.kind == FileKind::File
            && let Err(error) = copies.copy_file(&tree, path)
        {
            tracing::debug!(%error, "cannot copy an artifact");
        }
    }
    for (path, then) in before.iter().filter(|(path, _)| !after.contains_key(*path)) {
        report.add_deleted(path, then.bytes);
    }
    (report.into_changes(), after)
}

/// Every entry of a guest's layer, folders as well. `None` if there are too many to remember.
pub(crate) fn snapshot(layer: &DirTree) -> Option<WorkspaceFiles> {
    let seen = list_files(layer, true);
    (seen.len() < MAX_SEEN).then_some(seen)
}

/// In a workspace, a folder is there because of what is in it.
fn list_files(tree: &DirTree, has_folders: bool) -> WorkspaceFiles {
    let mut seen = WorkspaceFiles::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = tree.list(&folder) else { continue };
        for (name, node) in entries {
            if seen.len() >= MAX_SEEN {
                return seen;
            }
            let path = folder.join(name);
            let is_folder = node.kind == FileKind::Dir;
            if is_folder && depth < MAX_DEPTH {
                folders.push((path.clone(), depth + 1));
            }
            if !is_folder || has_folders {
                seen.insert(path, node);
            }
        }
    }
    seen
}

/// True if a workspace has no entries. A workspace is a tmpfs, so this does not wait for a disk.
pub(crate) fn is_empty(workspace: &OwnedFd) -> bool {
    let Ok(entries) = rustix::fs::Dir::read_from(workspace.as_fd()) else { return false };
    entries.flatten().all(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
}

#[cfg(test)]
mod tests;
