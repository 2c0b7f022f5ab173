//! Files that a guest moved. Overlayfs notes on its copy which file of the user's the copy was made
//! of, and keeps the note when the guest renames or links the copy.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::dir_tree::{DirTree, FileHandle, FileKind, FileNode, MAX_DEPTH};
use super::file_time::FileTime;

/// Bounds the files that are examined. A file beyond is taken for one that was not moved.
const MAX_EXAMINED: usize = 200_000;

/// The user's files that the guest deleted, replaced or linked: whatever was moved is among them.
#[derive(Default)]
pub(super) struct DisplacedFiles {
    handles: HashSet<FileHandle>,
    is_scanned: bool,
}

impl DisplacedFiles {
    /// Notes a file of the user's that is about to be replaced.
    pub(super) fn note(&mut self, target: &DirTree, path: &Path) {
        self.handles.extend(target.find_handle(path));
    }

    /// Collects all of them. Nothing may have been removed before.
    pub(super) fn scan(&mut self, upper: &DirTree, target: &DirTree) {
        if !self.is_scanned {
            self.is_scanned = true;
            scan_upper(upper, target, &mut self.handles);
        }
    }

    /// Returns true if the guest moved or linked the file of this origin. Without handles every
    /// deletion could be one half of a move.
    pub(super) fn has_origin(
        &mut self,
        upper: &DirTree,
        target: &DirTree,
        origin: Option<&FileHandle>,
    ) -> bool {
        self.scan(upper, target);
        origin.map_or(!self.handles.is_empty(), |origin| self.handles.contains(origin))
    }
}

/// Collects the user's files at the paths that an upper layer replaces or deletes.
fn scan_upper(upper: &DirTree, target: &DirTree, handles: &mut HashSet<FileHandle>) {
    let mut left = MAX_EXAMINED;
    walk(upper, Path::new(""), &mut left, &mut |path, node| {
        let there = target.find(path).ok().flatten();
        match there.map(|there| there.kind) {
            Some(FileKind::Dir) if node.kind != FileKind::Dir || upper.is_opaque(path) => {
                let mut left = MAX_EXAMINED;
                walk(target, path, &mut left, &mut |path, _| {
                    handles.extend(target.find_handle(path))
                });
            }
            Some(FileKind::Dir) | None => {}
            Some(_) => handles.extend(target.find_handle(path)),
        }
    });
}

/// Guest's files that were not written to the user's directory. A file of the user's that was moved
/// to one of them must not be deleted.
#[derive(Default)]
pub(super) struct UnwrittenFiles {
    origins: HashSet<FileHandle>,
    /// Moves between file systems copy, and keep size and time.
    copies: HashSet<(u64, FileTime)>,
}

impl UnwrittenFiles {
    pub(super) fn collect(upper: &DirTree, paths: &[PathBuf]) -> UnwrittenFiles {
        let mut unwritten = UnwrittenFiles::default();
        let mut left = MAX_EXAMINED;
        for path in paths {
            if let Ok(Some(node)) = upper.find(path) {
                unwritten.add(upper, path, &node);
            }
            walk(upper, path, &mut left, &mut |path, node| unwritten.add(upper, path, node));
        }
        unwritten
    }

    fn add(&mut self, upper: &DirTree, path: &Path, node: &FileNode) {
        if node.kind == FileKind::File {
            self.origins.extend(upper.find_origin(path, node.kind).flatten());
            self.copies.insert((node.bytes, node.stamp.modified));
        }
    }

    /// Returns true if the guest moved this file of the user's to a path that was not written.
    pub(super) fn has_moved(&self, target: &DirTree, path: &Path, node: &FileNode) -> bool {
        let is_copied =
            || node.bytes > 0 && self.copies.contains(&(node.bytes, node.stamp.modified));
        let has_origin = || {
            let handle = target.find_handle(path);
            handle.is_some_and(|handle| self.origins.contains(&handle))
        };
        node.kind == FileKind::File && !self.copies.is_empty() && (is_copied() || has_origin())
    }
}

/// Visits everything below a folder, but not the folder itself.
fn walk(tree: &DirTree, folder: &Path, left: &mut usize, visit: &mut impl FnMut(&Path, &FileNode)) {
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for (name, node) in tree.list(&folder).unwrap_or_default() {
            if *left == 0 {
                return;
            }
            *left -= 1;
            let path = folder.join(name);
            visit(&path, &node);
            if node.kind == FileKind::Dir && depth < MAX_DEPTH {
                folders.push((path, depth + 1));
            }
        }
    }
}
