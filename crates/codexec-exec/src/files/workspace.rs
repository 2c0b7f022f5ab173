//! What a guest did to a workspace of its own: listed, and copied before it is gone.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use codexec_types::Changes;

use super::kept::KeptFiles;
use super::listing::Listing;
use super::tree::{MAX_DEPTH, Node, NodeKind, Tree};

/// How much of a workspace is looked at. It holds no more files than `limits.disk-files`.
const MAX_SEEN: usize = 50_000;

/// Every file of a workspace at one moment, by its path from there.
pub(crate) type WorkspaceFiles = BTreeMap<PathBuf, Node>;

/// What a guest has done to its workspace since `before`, and how the workspace is now. New and
/// changed files are copied to `keep`, as far as there is room for them.
///
/// THREAT[FIL-6]: the guest may still change everything while this looks.
pub(crate) fn collect(
    workspace: OwnedFd,
    before: &WorkspaceFiles,
    keep: &Path,
) -> (Changes, WorkspaceFiles) {
    let tree = Tree::new(workspace);
    let after = see(&tree, false);
    let (mut listing, mut kept) = (Listing::default(), KeptFiles::new(keep));
    for (path, now) in &after {
        match before.get(path) {
            None => listing.created(path, now.bytes),
            Some(then) if then != now => listing.modified(path, now.bytes),
            Some(_) => continue,
        }
        if now.kind == NodeKind::File
            && let Err(error) = kept.keep_file(&tree, path)
        {
            tracing::debug!(%error, "an artifact was not kept");
        }
    }
    for (path, then) in before.iter().filter(|(path, _)| !after.contains_key(*path)) {
        listing.deleted(path, then.bytes);
    }
    (listing.into_changes(), after)
}

/// Every entry of a guest's layer, folders as well. `None` if there are too many to remember.
pub(crate) fn snapshot(layer: &Tree) -> Option<WorkspaceFiles> {
    let seen = see(layer, true);
    (seen.len() < MAX_SEEN).then_some(seen)
}

/// In a workspace, a folder is there because of what is in it.
fn see(tree: &Tree, has_folders: bool) -> WorkspaceFiles {
    let mut seen = WorkspaceFiles::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = tree.list(&folder) else { continue };
        for (name, node) in entries {
            if seen.len() >= MAX_SEEN {
                return seen;
            }
            let path = folder.join(name);
            let is_folder = node.kind == NodeKind::Dir;
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

/// True if a workspace, which is in memory and waits for no disk, has no entries.
pub(crate) fn is_empty(workspace: &OwnedFd) -> bool {
    let Ok(entries) = rustix::fs::Dir::read_from(workspace.as_fd()) else { return false };
    entries.flatten().all(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
}

#[cfg(test)]
mod tests;
