//! THREAT[FIL-12]: files that a guest moved. A move is two entries of a layer that do not name each other: a deletion
//! and a copy. A file that was moved keeps its size and its time of modification, also if it was
//! copied to another file system.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::dir_tree::{DirTree, FileKind, FileNode, MAX_DEPTH};
use super::file_time::FileTime;

/// Bounds the files that are examined. A file beyond is taken for one that was not moved.
const MAX_EXAMINED: usize = 200_000;

/// The size and time of modification, by which a file is recognized under another name.
type FileLook = (u64, FileTime);

fn look_of(node: &FileNode) -> FileLook {
    (node.bytes, node.stamp.modified)
}

/// The user's files that the guest deleted or replaced. Every moved file is among them.
#[derive(Default)]
pub(super) struct DisplacedFiles {
    looks: HashSet<FileLook>,
    is_scanned: bool,
}

impl DisplacedFiles {
    /// Notes a file of the user's that is about to be replaced.
    pub(super) fn note(&mut self, there: &FileNode) {
        self.looks.insert(look_of(there));
    }

    /// Collects the displaced files. The commit must not have removed any before.
    pub(super) fn scan(&mut self, upper: &DirTree, target: &DirTree) {
        if self.is_scanned {
            return;
        }
        self.is_scanned = true;
        let mut left = MAX_EXAMINED;
        walk(upper, Path::new(""), &mut left, &mut |path, node| {
            let Ok(Some(there)) = target.find(path) else { return };
            if there.kind != FileKind::Dir {
                if node.kind != FileKind::Dir && !upper.is_copy(path, node.kind) {
                    self.looks.insert(look_of(&there));
                }
            } else if node.kind != FileKind::Dir || upper.is_opaque(path) {
                let mut left = MAX_EXAMINED;
                walk(target, path, &mut left, &mut |_, node| {
                    self.looks.insert(look_of(node));
                });
            }
        });
    }

    /// Returns true if a copy may have been moved from a displaced file. A copy that the guest
    /// changed after the move cannot be recognized, so it may come from any of them.
    pub(super) fn may_include(&self, copy: &FileNode, since: FileTime) -> bool {
        let is_changed = copy.stamp.modified >= since;
        self.looks.contains(&look_of(copy)) || (is_changed && !self.looks.is_empty())
    }
}

/// The guest's files that were not written to the user's directory. A user's file that was moved to
/// such a path must not be deleted.
#[derive(Default)]
pub(super) struct UnwrittenFiles {
    looks: HashSet<FileLook>,
    /// True if an unwritten file was moved and then changed: any deleted file may be its origin.
    has_changed_copy: bool,
}

impl UnwrittenFiles {
    pub(super) fn collect(
        upper: &DirTree,
        target: &DirTree,
        paths: &[PathBuf],
        since: FileTime,
    ) -> UnwrittenFiles {
        let mut unwritten = UnwrittenFiles::default();
        let mut add = |path: &Path, node: &FileNode| {
            if node.kind != FileKind::File {
                return;
            }
            unwritten.looks.insert(look_of(node));
            let is_moved = || {
                upper.is_copy(path, node.kind)
                    && target.find(path).is_ok_and(|there| there.is_none())
            };
            unwritten.has_changed_copy |= node.stamp.modified >= since && is_moved();
        };
        let mut left = MAX_EXAMINED;
        for path in paths {
            if let Ok(Some(node)) = upper.find(path) {
                add(path, &node);
            }
            walk(upper, path, &mut left, &mut add);
        }
        unwritten
    }

    /// Returns true if the guest may have moved this file of the user's to a path that was not
    /// written.
    pub(super) fn may_include(&self, there: &FileNode) -> bool {
        there.kind == FileKind::File
            && there.bytes > 0
            && (self.has_changed_copy || self.looks.contains(&look_of(there)))
    }
}

/// Visits every entry below a folder, but not the folder itself.
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
