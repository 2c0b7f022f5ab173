//! A record of the earlier commits of one upper layer. A session's next commit then handles only
//! what is new, and can tell its own writes from other people's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::dir_tree::{DirTree, FileNode, NodeStamp};

#[derive(Default)]
pub(crate) struct CommitLedger {
    entries: BTreeMap<PathBuf, LedgerEntry>,
    /// The user's folders that a commit wrote to, with their stamps afterwards.
    folders: HashMap<PathBuf, Option<NodeStamp>>,
    /// Folders that the guest created.
    made: BTreeSet<PathBuf>,
}

struct LedgerEntry {
    /// The version of the guest's file that was handled.
    upper: NodeStamp,
    result: CommitResult,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CommitResult {
    /// The user's directory has the file, with this stamp.
    Put(NodeStamp),
    Removed,
    /// The user's directory does not have the file, but the guest still sees it.
    Held,
    /// The user's directory has somebody else's version.
    Conflict,
}

impl CommitLedger {
    /// True if this version of the guest's entry was handled before. Overlayfs may share one inode
    /// between all whiteouts, so their stamps are not compared.
    pub(crate) fn is_done(&self, path: &Path, node: &FileNode) -> bool {
        self.entries.get(path).is_some_and(|entry| {
            let is_removal = entry.result == CommitResult::Removed;
            match node.kind {
                super::dir_tree::FileKind::Whiteout => is_removal,
                _ => entry.upper == node.stamp && !is_removal,
            }
        })
    }

    /// True if the user's entry is unchanged since a commit wrote it.
    pub(crate) fn is_ours(&self, path: &Path, there: &FileNode) -> bool {
        let put = self.entries.get(path).is_some_and(
            |entry| matches!(entry.result, CommitResult::Put(stamp) if stamp == there.stamp),
        );
        put || self.folders.get(path).is_some_and(|folder| *folder == Some(there.stamp))
    }

    pub(crate) fn has_entry(&self, path: &Path) -> bool {
        self.entries.contains_key(path)
    }

    pub(crate) fn has_put(&self, path: &Path) -> bool {
        self.entries.get(path).is_some_and(|entry| matches!(entry.result, CommitResult::Put(_)))
    }

    pub(crate) fn has_made(&self, path: &Path) -> bool {
        self.made.contains(path)
    }

    pub(crate) fn note_made(&mut self, path: &Path) {
        self.made.insert(path.to_owned());
        self.mark_parent(path);
    }

    pub(crate) fn note_put(&mut self, path: &Path, node: &FileNode, now: &FileNode) {
        self.note(path, node, CommitResult::Put(now.stamp));
    }

    pub(crate) fn note_removed(&mut self, path: &Path, node: &FileNode) {
        self.note(path, node, CommitResult::Removed);
    }

    pub(crate) fn note_held(&mut self, path: &Path, node: &FileNode) {
        self.note(path, node, CommitResult::Held);
    }

    pub(crate) fn note_conflict(&mut self, path: &Path, node: &FileNode) {
        self.note(path, node, CommitResult::Conflict);
    }

    fn note(&mut self, path: &Path, node: &FileNode, result: CommitResult) {
        if result != CommitResult::Held {
            self.mark_parent(path);
            self.forget_below(path);
        }
        self.entries.insert(path.to_owned(), LedgerEntry { upper: node.stamp, result });
    }

    /// Forgets everything below a path that is no longer a folder.
    fn forget_below(&mut self, path: &Path) {
        self.made.remove(path);
        let beyond = (Bound::Excluded(path), Bound::Unbounded);
        let below = |other: &&PathBuf| other.starts_with(path);
        let made: Vec<PathBuf> =
            self.made.range::<Path, _>(beyond).take_while(below).cloned().collect();
        for folder in made {
            self.made.remove(&folder);
        }
        let paths = self.entries.range::<Path, _>(beyond).map(|(other, _)| other);
        let entries: Vec<PathBuf> = paths.take_while(below).cloned().collect();
        for entry in entries {
            self.entries.remove(&entry);
        }
    }

    /// Marks the parent folder as changed by us.
    fn mark_parent(&mut self, path: &Path) {
        if let Some(folder) = path.parent() {
            self.folders.insert(folder.to_owned(), None);
        }
    }

    /// Records the stamps of the folders that this commit wrote to. Called at the end of a commit.
    pub(crate) fn settle(&mut self, target: &DirTree) {
        for (path, stamp) in &mut self.folders {
            if stamp.is_none() && !path.as_os_str().is_empty() {
                *stamp = target.find(path).ok().flatten().map(|node| node.stamp);
            }
        }
        let made = self.made.iter().filter(|path| !self.folders.contains_key(*path));
        let stamps: Vec<_> = made
            .filter_map(|path| Some((path.clone(), Some(target.find(path).ok()??.stamp))))
            .collect();
        self.folders.extend(stamps);
    }

    /// Makes the folders in the next layer to which the held-back files will move.
    pub(crate) fn make_held_folders(&self, from: &DirTree, to: &DirTree) -> io::Result<()> {
        let mut root: Option<&Path> = None;
        for path in self.held() {
            if !root.is_some_and(|root| path.starts_with(root)) {
                root = Some(path);
                from.make_folders_above(path, to)?;
            }
        }
        Ok(())
    }

    /// Moves the held-back files from one layer to the next, where their folders exist, and forgets
    /// everything else, because the new layer contains nothing else.
    pub(crate) fn move_held(&mut self, from: &DirTree, to: &DirTree) -> io::Result<()> {
        let old = std::mem::take(self);
        let mut root: Option<&Path> = None;
        for path in old.held() {
            if !root.is_some_and(|root| path.starts_with(root)) {
                root = Some(path);
                from.move_entry(path, to)?;
            }
            // A rename changes the stamp of the moved entry, but of nothing below it.
            if let Some(node) = to.find(path)? {
                self.note_held(path, &node);
            }
        }
        Ok(())
    }

    fn held(&self) -> impl Iterator<Item = &Path> {
        let held = self.entries.iter().filter(|(_, entry)| entry.result == CommitResult::Held);
        held.map(|(path, _)| path.as_path())
    }
}
