//! A record of the earlier commits of one upper layer. A session's next commit then handles only
//! what is new, and can tell its own writes from other people's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::tree::{Node, Stamp, Tree};

#[derive(Default)]
pub(crate) struct Ledger {
    entries: BTreeMap<PathBuf, Entry>,
    /// The user's folders that a commit wrote to, with their stamps afterwards.
    folders: HashMap<PathBuf, Option<Stamp>>,
    /// Folders that the guest created.
    made: BTreeSet<PathBuf>,
}

struct Entry {
    /// The version of the guest's file that was handled.
    upper: Stamp,
    became: Became,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Became {
    /// The user's directory has the file, with this stamp.
    Put(Stamp),
    Removed,
    /// The user's directory does not have the file, but the guest still sees it.
    Held,
    /// The user's directory has somebody else's version.
    Conflict,
}

impl Ledger {
    /// True if this version of the guest's entry was handled before. Overlayfs may share one inode
    /// between all whiteouts, so their stamps are not compared.
    pub(crate) fn is_done(&self, path: &Path, node: &Node) -> bool {
        self.entries.get(path).is_some_and(|entry| {
            let is_removal = entry.became == Became::Removed;
            match node.kind {
                super::tree::NodeKind::Whiteout => is_removal,
                _ => entry.upper == node.stamp && !is_removal,
            }
        })
    }

    /// True if the user's entry is unchanged since a commit wrote it.
    pub(crate) fn is_ours(&self, path: &Path, there: &Node) -> bool {
        let put = self.entries.get(path).is_some_and(
            |entry| matches!(entry.became, Became::Put(stamp) if stamp == there.stamp),
        );
        put || self.folders.get(path).is_some_and(|folder| *folder == Some(there.stamp))
    }

    pub(crate) fn knows(&self, path: &Path) -> bool {
        self.entries.contains_key(path)
    }

    pub(crate) fn has_put(&self, path: &Path) -> bool {
        self.entries.get(path).is_some_and(|entry| matches!(entry.became, Became::Put(_)))
    }

    pub(crate) fn has_made(&self, path: &Path) -> bool {
        self.made.contains(path)
    }

    pub(crate) fn note_made(&mut self, path: &Path) {
        self.made.insert(path.to_owned());
        self.touch(path);
    }

    pub(crate) fn note_put(&mut self, path: &Path, node: &Node, now: &Node) {
        self.note(path, node, Became::Put(now.stamp));
    }

    pub(crate) fn note_removed(&mut self, path: &Path, node: &Node) {
        self.note(path, node, Became::Removed);
    }

    pub(crate) fn note_held(&mut self, path: &Path, node: &Node) {
        self.note(path, node, Became::Held);
    }

    pub(crate) fn note_conflict(&mut self, path: &Path, node: &Node) {
        self.note(path, node, Became::Conflict);
    }

    fn note(&mut self, path: &Path, node: &Node, became: Became) {
        if became != Became::Held {
            self.touch(path);
            self.forget_below(path);
        }
        self.entries.insert(path.to_owned(), Entry { upper: node.stamp, became });
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
    fn touch(&mut self, path: &Path) {
        if let Some(folder) = path.parent() {
            self.folders.insert(folder.to_owned(), None);
        }
    }

    /// Records the stamps of the folders that this commit wrote to. Called at the end of a commit.
    pub(crate) fn settle(&mut self, target: &Tree) {
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

    /// Moves the held-back files from one layer to the next and forgets everything else, because
    /// the new layer contains nothing else.
    pub(crate) fn move_held(&mut self, from: &Tree, to: &Tree) -> io::Result<()> {
        let old = std::mem::take(self);
        let mut root: Option<&Path> = None;
        for (path, entry) in &old.entries {
            if entry.became != Became::Held {
                continue;
            }
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
}
