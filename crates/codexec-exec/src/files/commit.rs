//! Commits the upper layer of an overlay to the user's directory: only what the guest wrote, only
//! where nobody else has changed anything, and no file that programs run or obey by themselves.

mod deletions;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use codexec_types::FileChanges;

use super::artifact_copies::ArtifactCopies;
use super::change_report::ChangeReport;
use super::dir_tree::{DirTree, FileKind, FileNode, MAX_DEPTH, have_equal_content};
use super::entry_writer::{self, EntryContent, EntryResult, NewEntry};
use super::file_time::FileTime;
use super::held_back::HeldBackRules;
use super::ledger::CommitLedger;
use super::moves::DisplacedFiles;

/// The inputs and the state of one commit.
pub(crate) struct Commit<'a> {
    pub(crate) upper: &'a DirTree,
    pub(crate) target: &'a DirTree,
    /// Changes in the user's directory after this moment were made by somebody else.
    pub(crate) since: FileTime,
    /// The earlier commits of the same layer.
    pub(crate) ledger: &'a mut CommitLedger,
    pub(crate) held_back: HeldBackRules<'a>,
    /// The owner of new files, if we are root.
    pub(crate) owner: Option<(u32, u32)>,
    /// Maximum bytes to copy.
    pub(crate) max_bytes: u64,
    pub(crate) copies: ArtifactCopies<'a>,
    pub(crate) report: ChangeReport,
    pub(crate) progress: CommitProgress,
}

/// The state of a commit in progress: observations, and work that is put off.
#[derive(Default)]
pub(crate) struct CommitProgress {
    /// Deletions come last, so that a moved file always exists at one path at least.
    deletions: Vec<Deletion>,
    /// Entries of another kind than the user's of the same name, with their depth.
    replacements: Vec<(PathBuf, FileNode, usize)>,
    displaced: DisplacedFiles,
    unwritten: Vec<PathBuf>,
    /// Folders that exist in the user's directory.
    folders: HashSet<PathBuf>,
}

enum Deletion {
    Entry(PathBuf, FileNode),
    /// The guest replaced a folder by a new one of the same name: entries of the old folder alone
    /// are deleted.
    OldContent(PathBuf),
}

const CHANGED: &str = "another process changed this file meanwhile; its version was kept";
const DELETED: &str = "another process deleted this file meanwhile";
const NOT_DELETED: &str = "another process changed this file meanwhile, so it was not deleted";
const EXCHANGED: &str = "another process replaced this folder meanwhile";
const MOVED: &str = "it stays, because the file that the code moved it to was not written";
const STASHED: &str = "`git stash` is not seen outside, so the files that it took away stay; \
    run `git stash pop` in this session";
const OUTSIDE: &str = "the link leads out of the directory";
const TOO_DEEP: &str = "folders are nested too deeply";
const TOO_LARGE: &str = "it is larger than `files.max-mib` allows";

/// A folder that is being committed.
#[derive(Clone, Copy, Default)]
struct Folder {
    /// The guest made it in the place of one of the user's.
    is_replaced: bool,
    is_stashed: bool,
    depth: usize,
}

impl Commit<'_> {
    /// Commits every entry. An entry that fails is reported as a conflict.
    pub(crate) fn run(mut self) -> FileChanges {
        self.commit_folder(Path::new(""), Folder::default());
        self.delete_entries();
        self.ledger.settle(self.target);
        self.report.into_changes()
    }

    fn commit_folder(&mut self, path: &Path, mut folder: Folder) {
        let entries = match self.upper.list(path) {
            Ok(entries) => entries,
            Err(error) => return self.report_failure(path, &error),
        };
        folder.is_stashed |= self.has_stash(path);
        for (name, node) in entries {
            let path = path.join(name);
            if let Err(error) = self.upper.unlock(&path, &node) {
                self.report_failure(&path, &error);
                continue;
            }
            let reason = match self.held_back.find_reason(self.upper, &path, &node) {
                None if folder.is_stashed => Some(STASHED),
                None if folder.depth >= MAX_DEPTH => Some(TOO_DEEP),
                other => other,
            };
            if let Some(reason) = reason {
                self.hold_back(&path, &node, reason);
                continue;
            }
            let done = match node.kind {
                FileKind::Dir => self.commit_dir(&path, &node, folder),
                FileKind::File => self.commit_file(&path, &node),
                FileKind::Link => self.commit_link(&path, &node),
                FileKind::Whiteout => {
                    self.progress.deletions.push(Deletion::Entry(path.clone(), node));
                    Ok(())
                }
                FileKind::Special => Ok(()),
            };
            if let Err(error) = done {
                self.report_failure(&path, &error);
            }
        }
    }

    fn commit_dir(&mut self, path: &Path, node: &FileNode, parent: Folder) -> io::Result<()> {
        // Overlayfs marks folders that replace one of the user's, but not the folders inside them.
        let is_replaced = parent.is_replaced || self.upper.is_opaque(path);
        let is_copy = self.upper.is_copy(path, FileKind::Dir);
        match self.target.find(path)? {
            Some(there) if there.kind == FileKind::Dir => {
                if is_replaced && !self.ledger.has_made(path) {
                    self.clear_folder_later(path, &there);
                }
                // A rename changes a folder's second time alone. New entries change both.
                let is_exchanged = there.stamp.modified < self.since
                    && there.stamp.changed >= self.since
                    && !self.ledger.is_ours(path, &there);
                if is_copy && !is_replaced && is_exchanged {
                    self.report_conflict(path, node, EXCHANGED);
                    return Ok(());
                }
            }
            Some(_) => {
                let depth = parent.depth;
                self.progress.replacements.push((path.to_owned(), *node, depth));
                return Ok(());
            }
            // A folder that somebody else deleted is restored only for new files in it.
            None if is_replaced || !is_copy => {
                self.make_dirs(path)?;
                self.ledger.note_made(path);
                if self.upper.list(path)?.is_empty() {
                    self.report.add_created(&path.join(""), 0);
                }
            }
            None => {}
        }
        if is_replaced {
            self.ledger.note_made(path);
        }
        let depth = parent.depth + 1;
        self.commit_folder(path, Folder { is_replaced, depth, ..parent });
        Ok(())
    }

    fn commit_file(&mut self, path: &Path, node: &FileNode) -> io::Result<()> {
        if self.ledger.is_done(path, node) {
            return Ok(());
        }
        if node.bytes > self.max_bytes {
            self.hold_back(path, node, TOO_LARGE);
            return Ok(());
        }
        let there = self.target.find(path)?;
        let (mut source, opened) = self.upper.open_file(path)?;
        // `unlock` may have changed the mode since.
        let node = FileNode { mode: node.mode, ..opened };
        if let Some(there) = &there
            && there.kind == FileKind::File
            && (there.bytes, there.mode) == (node.bytes, node.mode)
            && let Ok((mut theirs, _)) = self.target.open_file(path)
            && have_equal_content(&mut source, &mut theirs)?
        {
            return Ok(());
        }
        let was_there = there.is_none() && self.was_deleted(path, &node);
        let (mut source, _) = self.upper.open_file(path)?;
        let content = EntryContent::File(&mut source, self.max_bytes);
        let placed = self.put_entry(path, &node, there, was_there, content)?;
        if placed.is_some() {
            self.max_bytes = self.max_bytes.saturating_sub(node.bytes);
        }
        Ok(())
    }

    /// True if the guest's file is a copy of one that the user had at this path and has not any
    /// more. A copy that the guest moved or linked here is not.
    fn was_deleted(&mut self, path: &Path, node: &FileNode) -> bool {
        if !self.upper.is_copy(path, FileKind::File) {
            return false;
        }
        self.progress.displaced.scan(self.upper, self.target);
        !self.progress.displaced.may_include(node, self.since)
    }

    fn commit_link(&mut self, path: &Path, node: &FileNode) -> io::Result<()> {
        if self.ledger.is_done(path, node) {
            return Ok(());
        }
        let goal = self.upper.read_link(path)?;
        // THREAT[FIL-5]: one of the user's programs would follow the link.
        if !stays_inside(path, &goal) {
            self.hold_back(path, node, OUTSIDE);
            return Ok(());
        }
        let there = self.target.find(path)?;
        let is_link = there.is_some_and(|there| there.kind == FileKind::Link);
        if is_link && self.target.read_link(path)? == goal {
            return Ok(());
        }
        self.put_entry(path, node, there, false, EntryContent::Link(&goal)).map(drop)
    }

    /// Creates or replaces one entry. Returns `Some` if the user's directory has it now.
    fn put_entry(
        &mut self,
        path: &Path,
        node: &FileNode,
        there: Option<FileNode>,
        was_there: bool,
        content: EntryContent<'_>,
    ) -> io::Result<Option<FileNode>> {
        // THREAT[FIL-7]: somebody else's change wins.
        let is_ours = |there: &FileNode| self.ledger.is_ours(path, there);
        if let Some(there) = &there
            && there.stamp.changed >= self.since
            && !is_ours(there)
        {
            self.report_conflict(path, node, CHANGED);
            return Ok(None);
        }
        let is_gone = was_there || self.ledger.has_put(path);
        if there.is_none() && is_gone {
            self.report_conflict(path, node, DELETED);
            return Ok(None);
        }
        if there.is_some_and(|there| there.kind == FileKind::Dir) {
            self.progress.replacements.push((path.to_owned(), *node, 0));
            return Ok(None);
        }
        let owner = self.owner.map(|own| there.map_or(own, |there| there.owner));
        let modified = (node.kind == FileKind::File).then(|| node.stamp.modified.into());
        let entry = NewEntry { content, mode: node.mode, owner, modified };
        let placed = match &there {
            None => {
                self.make_dirs(path.parent().unwrap_or(Path::new("")))?;
                entry_writer::create(self.target, path, entry)?
            }
            Some(there) => {
                if !self.upper.is_copy(path, node.kind) {
                    self.progress.displaced.note(there);
                }
                entry_writer::replace(self.target, path, there, entry)?
            }
        };
        let EntryResult::Done(Some(now)) = placed else {
            self.report_conflict(path, node, CHANGED);
            return Ok(None);
        };
        self.ledger.note_put(path, node, &now);
        match there {
            None => self.report.add_created(path, node.bytes),
            Some(_) => self.report.add_modified(path, node.bytes),
        }
        Ok(Some(now))
    }

    fn make_dirs(&mut self, path: &Path) -> io::Result<()> {
        let is_known = || self.progress.folders.contains(path);
        if path.as_os_str().is_empty() || (is_known() && self.target.find(path)?.is_some()) {
            return Ok(());
        }
        let upper = self.upper;
        let mode = |path: &Path| match upper.find(path) {
            Ok(Some(node)) => node.mode,
            Ok(None) | Err(_) => 0o755,
        };
        entry_writer::make_dirs(self.target, path, mode, self.owner)?;
        self.progress.folders.insert(path.to_owned());
        Ok(())
    }

    /// True if the guest stashed changes of a repository in this folder, and the stash stays in
    /// the sandbox.
    fn has_stash(&self, folder: &Path) -> bool {
        let repository = folder.join(".git");
        let is_held =
            |node: &FileNode| self.held_back.find_reason(self.upper, &repository, node).is_some();
        let has_file = |path: &Path, kind: FileKind| {
            let found = self.upper.find(path).ok().flatten();
            found.filter(|node| node.kind == kind)
        };
        has_file(&repository, FileKind::Dir).as_ref().is_some_and(is_held)
            && has_file(&repository.join("refs/stash"), FileKind::File).is_some()
    }

    fn hold_back(&mut self, path: &Path, node: &FileNode, reason: &str) {
        let is_known = self.ledger.has_entry(path);
        let copied = self.copies.copy_entry(self.upper, path, node, self.ledger);
        if copied.is_new || !is_known {
            match node.kind {
                FileKind::Whiteout => {
                    self.report.add_held_back(path, &format!("not deleted: {reason}"));
                }
                _ => self.report.add_held_back(path, &copied.describe(reason)),
            }
        }
        self.ledger.note_held(path, node);
        self.progress.unwritten.push(path.to_owned());
    }

    fn report_conflict(&mut self, path: &Path, node: &FileNode, reason: &str) {
        let copied = self.copies.copy_entry(self.upper, path, node, self.ledger);
        self.ledger.note_conflict(path, node);
        self.report.add_conflict(path, &copied.describe(reason));
        self.progress.unwritten.push(path.to_owned());
    }

    fn report_failure(&mut self, path: &Path, error: &io::Error) {
        if let Ok(Some(node)) = self.upper.find(path) {
            self.copies.copy_entry(self.upper, path, &node, self.ledger);
        }
        tracing::warn!(path = %path.display(), %error, "a file was not committed");
        self.report.add_failed(path, error);
        self.progress.unwritten.push(path.to_owned());
    }
}

/// True if a link at `path` cannot lead out of the directory. `..` is allowed only at the start of
/// its target: after a name, which may be a symlink, it could lead anywhere.
fn stays_inside(path: &Path, goal: &Path) -> bool {
    use std::path::Component;
    let mut height = path.components().count().saturating_sub(1);
    let mut is_going_up = true;
    for component in goal.components() {
        match component {
            Component::ParentDir if is_going_up && height > 0 => height -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
            Component::Normal(_) => is_going_up = false,
            Component::CurDir => {}
        }
    }
    true
}

#[cfg(test)]
mod tests;
