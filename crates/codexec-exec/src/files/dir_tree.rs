//! A directory tree that is accessed through descriptors only: no link is followed, no mount is
//! crossed and no path leaves the tree, whatever is renamed meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::file_time::FileTime;

/// Guests can nest folders without limit; no real project is this deep.
pub(crate) const MAX_DEPTH: usize = 128;

pub(crate) struct DirTree(OwnedFd);

/// An entry of a tree as `stat` describes it. Symlinks are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileNode {
    pub(crate) kind: FileKind,
    pub(crate) bytes: u64,
    pub(crate) stamp: NodeStamp,
    /// The permission bits without set-id and sticky bits.
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    File,
    Dir,
    Link,
    /// A character device with the number 0:0, which overlayfs creates where the guest deleted an
    /// entry.
    Whiteout,
    /// A pipe, a socket or a device.
    Special,
}

/// The identity of a file, and when it last changed. Unlike a stamp of `codexec-files`, this has
/// the modification time, which a rename keeps, and no size or device: all files of a tree are on
/// one device, and the size of a folder means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeStamp {
    inode: u64,
    pub(crate) modified: FileTime,
    pub(crate) changed: FileTime,
}

impl DirTree {
    pub(crate) fn new(directory: OwnedFd) -> DirTree {
        DirTree(directory)
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    pub(crate) fn open_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    /// Opens a folder as a tree of its own.
    pub(crate) fn open_subtree(&self, path: &Path) -> io::Result<DirTree> {
        self.open_dir(path).map(DirTree)
    }

    /// Opens a regular file for reading. Never blocks on a pipe or device.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<(File, FileNode)> {
        let file = File::from(self.open(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
        let node = FileNode::from_stat(&fs::fstat(&file)?);
        if node.kind != FileKind::File {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok((file, node))
    }

    /// Opens the parent folder of a path. Returns it with the last component.
    pub(crate) fn open_parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.open_dir(path.parent().unwrap_or(Path::new("")))?, name))
    }

    /// Returns the entry at a path, or `None` if there is none.
    pub(crate) fn find(&self, path: &Path) -> io::Result<Option<FileNode>> {
        let found =
            self.open_parent(path).and_then(|(folder, name)| stat_entry(folder.as_fd(), name));
        match found {
            Err(error) if is_absent(&error) => Ok(None),
            other => other.map(Some),
        }
    }

    /// True if an entry of an upper layer began as a copy of one of the lower layer, by the mark
    /// that overlayfs leaves. In a user namespace the mark does not say of which: a copy that was
    /// moved has it as well. A file to which the guest gave a second name is not a copy.
    pub(crate) fn is_copy(&self, path: &Path, kind: FileKind) -> bool {
        let entry = match kind {
            FileKind::Dir => self.open_dir(path),
            FileKind::File => self.open_file(path).map(|(file, _)| OwnedFd::from(file)),
            // Links have no attributes of users.
            FileKind::Link | FileKind::Whiteout | FileKind::Special => return false,
        };
        entry.is_ok_and(|entry| {
            let is_linked = || fs::fstat(&entry).is_ok_and(|stat| stat.st_nlink > 1);
            fs::fgetxattr(&entry, "user.overlay.origin", &mut [0_u8; 256]).is_ok()
                && (kind == FileKind::Dir || !is_linked())
        })
    }

    /// True if overlayfs marked this folder as one that hides the lower layer's.
    pub(crate) fn is_opaque(&self, path: &Path) -> bool {
        let folder = self.open_dir(path);
        folder.is_ok_and(|folder| {
            fs::fgetxattr(folder, "user.overlay.opaque", &mut [0_u8; 8]).is_ok()
        })
    }

    pub(crate) fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        // A name alone cannot lead out, and the commit asks for many of them.
        let target = match (path.components().count(), path.file_name()) {
            (1, Some(name)) => fs::readlinkat(&self.0, name, Vec::new())?,
            _ => {
                let (folder, name) = self.open_parent(path)?;
                fs::readlinkat(folder, name, Vec::new())?
            }
        };
        Ok(PathBuf::from(OsStr::from_bytes(target.as_bytes())))
    }

    /// Lists a folder, sorted by name. Entries that disappear meanwhile are skipped.
    pub(crate) fn list(&self, path: &Path) -> io::Result<Vec<(OsString, FileNode)>> {
        let folder = self.open_dir(path)?;
        let mut found = Vec::new();
        for entry in fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            match stat_entry(folder.as_fd(), name) {
                Ok(node) => found.push((name.to_owned(), node)),
                Err(error) if is_absent(&error) => {}
                Err(error) => return Err(error),
            }
        }
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(found)
    }

    /// Makes an entry readable that a guest closed with its mode. Only for our own layers: the
    /// user's modes are never changed.
    pub(crate) fn unlock(&self, path: &Path, node: &FileNode) -> io::Result<()> {
        let needed = if node.kind == FileKind::Dir { 0o700 } else { 0o400 };
        if node.mode & needed == needed || !matches!(node.kind, FileKind::Dir | FileKind::File) {
            return Ok(());
        }
        let entry = self.open(path, OFlags::PATH | OFlags::NOFOLLOW)?;
        let by_descriptor = format!("/proc/self/fd/{}", entry.as_raw_fd());
        let mode = Mode::from_raw_mode(node.mode | needed);
        Ok(fs::chmodat(CWD, by_descriptor, mode, AtFlags::empty())?)
    }

    /// Creates a folder with the mode and owner of another.
    pub(crate) fn make_folder(&self, path: &Path, like: &Path) -> io::Result<()> {
        self.make_folder_like(path, &self.open_dir(like)?)
    }

    fn make_folder_like(&self, path: &Path, like: &OwnedFd) -> io::Result<()> {
        let (folder, name) = self.open_parent(path)?;
        match fs::mkdirat(&folder, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
        let made = self.open_dir(path)?;
        let stat = fs::fstat(like)?;
        let (user, group) = (fs::Uid::from_raw(stat.st_uid), fs::Gid::from_raw(stat.st_gid));
        fs::fchown(&made, Some(user), Some(group))?;
        Ok(fs::fchmod(&made, Mode::from_raw_mode(stat.st_mode & 0o777))?)
    }

    /// Makes the folders above a path in another tree, like those in this one.
    pub(crate) fn make_folders_above(&self, path: &Path, to: &DirTree) -> io::Result<()> {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        for folder in above.into_iter().filter(|path| !path.as_os_str().is_empty()) {
            to.make_folder_like(folder, &self.open_dir(folder)?)?;
        }
        Ok(())
    }

    /// Moves an entry to the same path in another tree of the same file system, where its folder
    /// exists.
    pub(crate) fn move_entry(&self, path: &Path, to: &DirTree) -> io::Result<()> {
        let ((old, name), (new, _)) = (self.open_parent(path)?, to.open_parent(path)?);
        Ok(fs::renameat(old, name, new, name)?)
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        loop {
            match fs::openat2(&self.0, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                // Some ancestor was renamed during the lookup.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }
}

impl FileNode {
    fn from_stat(stat: &Stat) -> FileNode {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Dir,
            FileType::Symlink => FileKind::Link,
            FileType::CharacterDevice if stat.st_rdev == 0 => FileKind::Whiteout,
            _ => FileKind::Special,
        };
        let stamp = NodeStamp {
            inode: stat.st_ino,
            modified: FileTime::new(stat.st_mtime, stat.st_mtime_nsec),
            changed: FileTime::new(stat.st_ctime, stat.st_ctime_nsec),
        };
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        let (mode, owner) = (stat.st_mode & 0o777, (stat.st_uid, stat.st_gid));
        FileNode { kind, bytes, stamp, mode, owner }
    }

    /// True if this is the same file with the same content, judging by its times. A rename changes
    /// `changed`.
    pub(crate) fn has_content_of(&self, other: &FileNode) -> bool {
        self.kind == other.kind
            && self.bytes == other.bytes
            && self.stamp.inode == other.stamp.inode
            && self.stamp.modified == other.stamp.modified
    }
}

pub(crate) fn stat_entry(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<FileNode> {
    Ok(FileNode::from_stat(&fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?))
}

pub(crate) fn stat_file(file: &File) -> io::Result<FileNode> {
    Ok(FileNode::from_stat(&fs::fstat(file)?))
}

/// True if the error means that the path does not exist.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Compares two files from their current positions to their ends.
pub(crate) fn have_equal_content(a: &mut File, b: &mut File) -> io::Result<bool> {
    let (mut left, mut right) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let count = a.read(&mut left)?;
        if count == 0 {
            return Ok(b.read(&mut right)? == 0);
        }
        let other = right.get_mut(..count).unwrap_or_default();
        match b.read_exact(other) {
            Ok(()) if left.get(..count) == Some(&*other) => {}
            Ok(()) => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
