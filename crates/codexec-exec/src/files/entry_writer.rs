//! Changes entries of the user's directory, one at a time. Each change inspects the displaced entry
//! afterwards and puts it back if somebody else has changed it, so nothing of the user is
//! overwritten or deleted unnoticed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{
    self, AtFlags, Gid, Mode, OFlags, RenameFlags, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;

use super::dir_tree::{DirTree, FileKind, FileNode, stat_entry, stat_file};

/// The result of a change to one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryResult {
    Done(Option<FileNode>),
    /// The entry was changed by somebody else meanwhile; their version stays.
    Conflict,
}

/// The new state of an entry.
pub(super) struct NewEntry<'a> {
    pub(super) content: EntryContent<'a>,
    pub(super) mode: u32,
    pub(super) owner: Option<(u32, u32)>,
    pub(super) modified: Option<Timespec>,
}

pub(super) enum EntryContent<'a> {
    /// A file, cut to this many bytes.
    File(&'a mut File, u64),
    Link(&'a Path),
}

/// Creates an entry. Returns `Conflict` if one exists by now.
pub(super) fn create(tree: &DirTree, path: &Path, entry: NewEntry<'_>) -> io::Result<EntryResult> {
    let (folder, name) = tree.open_parent(path)?;
    let staged = StagedEntry::write(folder, entry)?;
    staged.publish(name)
}

/// Replaces the `expected` entry.
pub(super) fn replace(
    tree: &DirTree,
    path: &Path,
    expected: &FileNode,
    entry: NewEntry<'_>,
) -> io::Result<EntryResult> {
    let (folder, name) = tree.open_parent(path)?;
    let staged = StagedEntry::write(folder, entry)?;
    if let (Some(file), Ok((old, _))) = (&staged.file, tree.open_file(path)) {
        copy_attributes(&old, file);
        // A plain user can keep only a group that they are in.
        let _ = fs::fchown(file, None, Some(Gid::from_raw(expected.owner.1)));
    }
    staged.exchange(name, expected)
}

/// Removes a file or a symlink.
pub(super) fn remove(tree: &DirTree, path: &Path, expected: &FileNode) -> io::Result<EntryResult> {
    let (folder, name) = tree.open_parent(path)?;
    let aside = random_name()?;
    match fs::renameat_with(&folder, name, &folder, &aside, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::NOENT) => return Ok(EntryResult::Done(None)),
        // The file system does not support the flag.
        Err(Errno::INVAL) => {
            return match stat_entry(folder.as_fd(), name)?.has_content_of(expected) {
                true => fs::unlinkat(&folder, name, AtFlags::empty())
                    .map(|()| EntryResult::Done(None))
                    .map_err(Into::into),
                false => Ok(EntryResult::Conflict),
            };
        }
        Err(errno) => return Err(errno.into()),
    }
    if is_untouched(tree, &folder, &aside, path, expected) {
        fs::unlinkat(&folder, &aside, AtFlags::empty())?;
        return Ok(EntryResult::Done(None));
    }
    // If the name is taken by now, both entries stay: the displaced one under its temporary name.
    let _ = fs::renameat_with(&folder, &aside, &folder, name, RenameFlags::NOREPLACE);
    Ok(EntryResult::Conflict)
}

/// Removes an empty folder.
pub(super) fn remove_dir(tree: &DirTree, path: &Path) -> io::Result<EntryResult> {
    let (folder, name) = tree.open_parent(path)?;
    match fs::unlinkat(&folder, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(EntryResult::Done(None)),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(EntryResult::Conflict),
        Err(errno) => Err(errno.into()),
    }
}

const SET_GROUP: u32 = 0o2000;

/// Copies the extended attributes and access lists that the user gave a file. Capabilities are not
/// among them: the content is the guest's.
fn copy_attributes(from: &File, to: &File) {
    const MAX_BYTES: usize = 64 << 10;
    let mut names = vec![0_u8; MAX_BYTES];
    let Ok(length) = fs::flistxattr(from, &mut names) else { return };
    let names = names.get(..length).unwrap_or_default().split(|byte| *byte == 0);
    let is_users = |name: &&[u8]| {
        (name.starts_with(b"user.") && !name.starts_with(b"user.overlay."))
            || *name == b"system.posix_acl_access"
    };
    let mut value = vec![0_u8; MAX_BYTES];
    for name in names.filter(is_users) {
        let copied = fs::fgetxattr(from, name, &mut value).and_then(|length| {
            let value = value.get(..length).unwrap_or_default();
            fs::fsetxattr(to, name, value, XattrFlags::empty())
        });
        if let Err(error) = copied {
            tracing::debug!(%error, "cannot copy an extended attribute");
        }
    }
}

/// Creates a folder and its missing parents. Returns true if any was created.
pub(super) fn make_dirs(
    tree: &DirTree,
    path: &Path,
    mode: impl Fn(&Path) -> u32,
    owner: Option<(u32, u32)>,
) -> io::Result<bool> {
    let mut is_new = false;
    let mut above =
        path.ancestors().filter(|path| !path.as_os_str().is_empty()).collect::<Vec<_>>();
    above.reverse();
    for path in above {
        let (folder, name) = tree.open_parent(path)?;
        match fs::mkdirat(&folder, name, Mode::from_raw_mode(mode(path))) {
            Ok(()) => is_new = true,
            Err(Errno::EXIST) => continue,
            Err(errno) => return Err(errno.into()),
        }
        let made = tree.open_dir(path)?;
        // A folder in a folder with this bit has the bit and the group of that one.
        let inherited = fs::fstat(&made)?.st_mode & SET_GROUP;
        if let Some((user, group)) = owner {
            let group = (inherited == 0).then(|| Gid::from_raw(group));
            fs::fchown(&made, Some(Uid::from_raw(user)), group)?;
        }
        // `mkdir` applied our own umask.
        fs::fchmod(&made, Mode::from_raw_mode(mode(path) | inherited))?;
    }
    Ok(is_new)
}

/// An entry that is written, but not visible under its final name yet.
struct StagedEntry {
    folder: OwnedFd,
    file: Option<File>,
    /// `None` while the file has no name at all (`O_TMPFILE`).
    name: Option<OsString>,
}

impl StagedEntry {
    fn write(folder: OwnedFd, entry: NewEntry<'_>) -> io::Result<StagedEntry> {
        let NewEntry { content, mode, owner, modified } = entry;
        let mut staged = match content {
            EntryContent::Link(target) => {
                let name = random_name()?;
                fs::symlinkat(target, &folder, &name)?;
                StagedEntry { folder, file: None, name: Some(name) }
            }
            EntryContent::File(source, max_bytes) => {
                let mut staged = StagedEntry::create_unnamed(folder)?;
                if let Some(file) = &mut staged.file {
                    io::copy(&mut io::Read::take(source, max_bytes), file)?;
                    // THREAT[FIL-4]: drops set-id bits.
                    fs::fchmod(&*file, Mode::from_raw_mode(mode & 0o777))?;
                }
                staged
            }
        };
        staged.set_owner(owner)?;
        if let (Some(file), Some(modified)) = (&staged.file, modified) {
            let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
            fs::futimens(file, &Timestamps { last_access: omit, last_modification: modified })?;
        }
        Ok(staged)
    }

    fn create_unnamed(folder: OwnedFd) -> io::Result<StagedEntry> {
        let mode = Mode::from_raw_mode(0o600);
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        if let Ok(file) = fs::openat(&folder, ".", flags, mode) {
            return Ok(StagedEntry { folder, file: Some(File::from(file)), name: None });
        }
        // The file system does not support `O_TMPFILE`.
        let name = random_name()?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let file = fs::openat(&folder, &name, flags | OFlags::NOFOLLOW, mode)?;
        Ok(StagedEntry { folder, file: Some(File::from(file)), name: Some(name) })
    }

    fn set_owner(&mut self, owner: Option<(u32, u32)>) -> io::Result<()> {
        let Some((user, group)) = owner else { return Ok(()) };
        let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
        match (&self.file, &self.name) {
            (Some(file), _) => fs::fchown(file, user, group)?,
            (None, Some(name)) => {
                fs::chownat(&self.folder, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// Gives the entry its final name, if that is free.
    fn publish(mut self, name: &OsStr) -> io::Result<EntryResult> {
        let named = match self.name.take() {
            None => self.link_as(name),
            Some(staged) => {
                let flags = RenameFlags::NOREPLACE;
                let moved = fs::renameat_with(&self.folder, &staged, &self.folder, name, flags);
                // The file system does not support the flag: the file has two names for a moment,
                // but is never lost.
                let moved = match moved {
                    Err(Errno::INVAL) => {
                        let none = AtFlags::empty();
                        fs::linkat(&self.folder, &staged, &self.folder, name, none)
                            .and_then(|()| fs::unlinkat(&self.folder, &staged, none))
                    }
                    other => other,
                };
                if moved.is_err() {
                    self.name = Some(staged);
                }
                moved
            }
        };
        match named {
            Ok(()) => self.describe_result(name),
            Err(Errno::EXIST) => Ok(EntryResult::Conflict),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Swaps the entry with the one that has the name, and checks that this was the expected one.
    fn exchange(mut self, name: &OsStr, expected: &FileNode) -> io::Result<EntryResult> {
        let staged = match self.name.take() {
            Some(staged) => staged,
            None => {
                let staged = random_name()?;
                self.link_as(&staged)?;
                staged
            }
        };
        self.name = Some(staged.clone());
        let (folder, flags) = (&self.folder, RenameFlags::EXCHANGE);
        match fs::renameat_with(folder, &staged, folder, name, flags) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(EntryResult::Conflict),
            // The file system cannot exchange names: the entry is checked just before the rename.
            Err(Errno::INVAL) => {
                if !stat_entry(folder.as_fd(), name)?.has_content_of(expected) {
                    return Ok(EntryResult::Conflict);
                }
                fs::renameat(folder, &staged, folder, name)?;
                self.name = None;
                return self.describe_result(name);
            }
            Err(errno) => return Err(errno.into()),
        }
        let tree = DirTree::new(folder.try_clone()?);
        if is_untouched(&tree, folder, &staged, Path::new(&staged), expected) {
            return self.describe_result(name);
        }
        if let Err(errno) = fs::renameat_with(folder, &staged, folder, name, flags) {
            // The temporary name now holds the user's file, which must not be deleted.
            self.name = None;
            return Err(errno.into());
        }
        Ok(EntryResult::Conflict)
    }

    fn link_as(&self, name: &OsStr) -> Result<(), Errno> {
        let Some(file) = &self.file else { return Err(Errno::INVAL) };
        let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
        fs::linkat(fs::CWD, by_descriptor, &self.folder, name, AtFlags::SYMLINK_FOLLOW)
    }

    fn describe_result(&self, name: &OsStr) -> io::Result<EntryResult> {
        let node = match &self.file {
            Some(file) => stat_file(file)?,
            None => stat_entry(self.folder.as_fd(), name)?,
        };
        Ok(EntryResult::Done(Some(node)))
    }
}

impl Drop for StagedEntry {
    /// Removes the temporary name, which holds our own entry or the one that was replaced.
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = fs::unlinkat(&self.folder, name, AtFlags::empty());
        }
    }
}

/// True if the displaced entry is the expected one, and nobody has it open for writing.
fn is_untouched(
    tree: &DirTree,
    folder: &OwnedFd,
    aside: &OsStr,
    path: &Path,
    expected: &FileNode,
) -> bool {
    let is_same =
        stat_entry(folder.as_fd(), aside).is_ok_and(|found| found.has_content_of(expected));
    if !is_same || expected.kind != FileKind::File {
        return is_same;
    }
    let aside = path.with_file_name(aside);
    match tree.open_file(&aside) {
        Ok((file, found)) => {
            found.has_content_of(expected) && !codexec_sandbox::is_open_for_writing(file.as_fd())
        }
        // An unreadable file: only its times can be compared.
        Err(_) => is_same,
    }
}

/// Returns a random name that identifies its owner if we die before removing it.
fn random_name() -> io::Result<OsString> {
    let mut bits = [0; 8];
    getrandom::fill(&mut bits).map_err(io::Error::other)?;
    Ok(OsString::from(format!(".codexec-{:016x}", u64::from_ne_bytes(bits))))
}
