//! Commits the upper layer of an overlay to the user's directory: only what the guest wrote, only
//! where nobody else has changed anything, and no file that programs run or obey by themselves.

use std::io;
use std::path::Path;

use codexec_types::FileChanges;
use rustix::fs::fgetxattr;

use super::artifact_copies::ArtifactCopies;
use super::change_report::ChangeReport;
use super::dir_tree::{DirTree, FileKind, FileNode, MAX_DEPTH, have_equal_content};
use super::entry_writer::{self, EntryContent, EntryResult, NewEntry};
use super::file_time::FileTime;
use super::held_back;
use super::ledger::CommitLedger;

/// The inputs and the state of one commit.
pub(crate) struct Commit<'a> {
    pub(crate) upper: &'a DirTree,
    pub(crate) target: &'a DirTree,
    /// Changes in the user's directory after this moment were made by somebody else.
    pub(crate) since: FileTime,
    /// The earlier commits of the same layer.
    pub(crate) ledger: &'a mut CommitLedger,
    pub(crate) let_through: &'a [String],
    /// The owner of new files, if we are root.
    pub(crate) owner: Option<(u32, u32)>,
    /// Maximum bytes to copy.
    pub(crate) max_bytes: u64,
    pub(crate) copies: ArtifactCopies<'a>,
    pub(crate) report: ChangeReport,
}

const CHANGED: &str = "somebody else changed it meanwhile, and theirs stays";
const DELETED: &str = "somebody else deleted it meanwhile";
const NOT_DELETED: &str = "somebody else changed it meanwhile, so it was not deleted";
const OUTSIDE: &str = "the link leads out of the directory";
const TOO_DEEP: &str = "folders are nested too deeply";
const TOO_LARGE: &str = "it is larger than `files.max-mib` allows";

impl Commit<'_> {
    /// Commits every entry. An entry that fails is reported as a conflict.
    pub(crate) fn run(mut self) -> FileChanges {
        self.commit_folder(Path::new(""), false, 0);
        self.ledger.settle(self.target);
        self.report.into_changes()
    }

    /// Commits the entries of one folder. `is_replaced`: the user's folder is not the one that the
    /// guest saw.
    fn commit_folder(&mut self, path: &Path, is_replaced: bool, depth: usize) {
        let entries = match self.upper.list(path) {
            Ok(entries) => entries,
            Err(error) => return self.report_failure(path, &error),
        };
        for (name, node) in entries {
            let path = path.join(name);
            if let Err(error) = self.upper.unlock(&path, &node) {
                self.report_failure(&path, &error);
                continue;
            }
            let reason = match held_back::find_reason(self.upper, &path, &node, self.let_through) {
                None if depth >= MAX_DEPTH => Some(TOO_DEEP),
                other => other,
            };
            if let Some(reason) = reason {
                self.hold_back(&path, &node, reason);
                continue;
            }
            let done = match node.kind {
                FileKind::Dir => self.commit_dir(&path, &node, is_replaced, depth),
                FileKind::File => self.commit_file(&path, &node, is_replaced),
                FileKind::Link => self.commit_link(&path, &node),
                FileKind::Whiteout => self.commit_deletion(&path, &node),
                FileKind::Special => Ok(()),
            };
            if let Err(error) = done {
                self.report_failure(&path, &error);
            }
        }
    }

    fn commit_dir(
        &mut self,
        path: &Path,
        node: &FileNode,
        is_replaced: bool,
        depth: usize,
    ) -> io::Result<()> {
        // Overlayfs marks folders that the guest created, but not the folders inside them.
        let is_own = is_replaced || self.is_opaque(path);
        let there = self.target.find(path)?;
        match there {
            Some(there) if there.kind == FileKind::Dir => {
                let is_new = is_own && !self.ledger.has_made(path);
                is_new.then(|| self.clear_folder(path, &there)).transpose()?;
            }
            Some(there) => {
                if self.remove_entry(path, &there)? == EntryResult::Conflict {
                    self.report_conflict(path, node, CHANGED);
                    return Ok(());
                }
                self.make_dirs(path)?;
            }
            // A folder that somebody else deleted is restored only for new files in it.
            None if is_own => self.make_dirs(path)?,
            None => {}
        }
        if is_own {
            self.ledger.note_made(path);
        }
        self.commit_folder(path, is_own, depth + 1);
        Ok(())
    }

    fn commit_file(&mut self, path: &Path, node: &FileNode, is_new: bool) -> io::Result<()> {
        if self.ledger.is_done(path, node) {
            return Ok(());
        }
        if node.bytes > self.max_bytes {
            self.hold_back(path, node, TOO_LARGE);
            return Ok(());
        }
        let there = self.target.find(path)?;
        let (mut source, node) = self.upper.open_file(path)?;
        if let Some(there) = &there
            && there.kind == FileKind::File
            && (there.bytes, there.mode) == (node.bytes, node.mode)
            && let Ok((mut existing, _)) = self.target.open_file(path)
            && have_equal_content(&mut source, &mut existing)?
        {
            return Ok(());
        }
        let was_there = self.was_copied_up(path) && !is_new;
        let (mut source, node) = self.upper.open_file(path)?;
        let content = EntryContent::File(&mut source, self.max_bytes);
        let placed = self.put_entry(path, &node, there, was_there, content)?;
        if placed.is_some() {
            self.max_bytes = self.max_bytes.saturating_sub(node.bytes);
        }
        Ok(())
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
        let owner = self.owner.map(|own| there.map_or(own, |there| there.owner));
        let modified = (node.kind == FileKind::File).then(|| node.stamp.modified.into());
        let entry = NewEntry { content, mode: node.mode, owner, modified };
        let placed = match &there {
            None => {
                self.make_dirs(path.parent().unwrap_or(Path::new("")))?;
                entry_writer::create(self.target, path, entry)?
            }
            Some(there) if there.kind == FileKind::Dir => {
                if self.remove_entry(path, there)? == EntryResult::Conflict {
                    self.report_conflict(path, node, CHANGED);
                    return Ok(None);
                }
                entry_writer::create(self.target, path, entry)?
            }
            Some(there) => entry_writer::replace(self.target, path, there, entry)?,
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

    fn commit_deletion(&mut self, path: &Path, node: &FileNode) -> io::Result<()> {
        if self.ledger.is_done(path, node) {
            return Ok(());
        }
        if let Some(there) = self.target.find(path)?
            && self.remove_entry(path, &there)? == EntryResult::Conflict
        {
            self.report.add_conflict(path, NOT_DELETED);
        }
        self.ledger.note_removed(path, node);
        Ok(())
    }

    /// Removes what the guest removed, but nothing that somebody else has changed or added.
    fn remove_entry(&mut self, path: &Path, there: &FileNode) -> io::Result<EntryResult> {
        if there.stamp.changed >= self.since && !self.ledger.is_ours(path, there) {
            return Ok(EntryResult::Conflict);
        }
        if there.kind != FileKind::Dir {
            let placed = entry_writer::remove(self.target, path, there)?;
            if placed != EntryResult::Conflict {
                self.report.add_deleted(path, there.bytes);
            }
            return Ok(placed);
        }
        let mut is_whole = true;
        for (name, node) in self.target.list(path)? {
            is_whole &= self.remove_entry(&path.join(name), &node)? != EntryResult::Conflict;
        }
        if !is_whole {
            return Ok(EntryResult::Conflict);
        }
        entry_writer::remove_dir(self.target, path)
    }

    /// Empties a folder that the guest deleted and created again, except for entries that the new
    /// folder has, too.
    fn clear_folder(&mut self, path: &Path, there: &FileNode) -> io::Result<()> {
        if there.stamp.changed >= self.since && !self.ledger.is_ours(path, there) {
            return Ok(());
        }
        for (name, node) in self.target.list(path)? {
            let path = path.join(name);
            if self.upper.find(&path)?.is_none()
                && self.remove_entry(&path, &node)? == EntryResult::Conflict
            {
                self.report.add_conflict(&path, NOT_DELETED);
            }
        }
        Ok(())
    }

    fn make_dirs(&mut self, path: &Path) -> io::Result<()> {
        let upper = self.upper;
        let mode = |path: &Path| match upper.find(path) {
            Ok(Some(node)) => node.mode,
            Ok(None) | Err(_) => 0o755,
        };
        entry_writer::make_dirs(self.target, path, mode, self.owner).map(drop)
    }

    fn is_opaque(&self, path: &Path) -> bool {
        self.has_xattr(self.upper.open_dir(path), "user.overlay.opaque")
    }

    /// True if the file started as a copy of one of the user's files.
    fn was_copied_up(&self, path: &Path) -> bool {
        self.has_xattr(self.upper.open_file(path).map(|(file, _)| file), "user.overlay.origin")
    }

    fn has_xattr(&self, opened: io::Result<impl std::os::fd::AsFd>, name: &str) -> bool {
        opened.is_ok_and(|entry| fgetxattr(entry, name, &mut [0_u8; 128]).is_ok())
    }

    fn hold_back(&mut self, path: &Path, node: &FileNode, reason: &'static str) {
        let is_known = self.ledger.has_entry(path);
        let has_news = self.copies.copy_entry(self.upper, path, node, self.ledger);
        if has_news || !is_known {
            self.report.add_held_back(path, reason);
        }
        self.ledger.note_held(path, node);
    }

    fn report_conflict(&mut self, path: &Path, node: &FileNode, reason: &'static str) {
        self.copies.copy_entry(self.upper, path, node, self.ledger);
        self.ledger.note_conflict(path, node);
        self.report.add_conflict(path, reason);
    }

    fn report_failure(&mut self, path: &Path, error: &io::Error) {
        if let Ok(Some(node)) = self.upper.find(path) {
            self.copies.copy_entry(self.upper, path, &node, self.ledger);
        }
        tracing::warn!(path = %path.display(), %error, "cannot commit a file");
        self.report.add_failed(path, error);
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
