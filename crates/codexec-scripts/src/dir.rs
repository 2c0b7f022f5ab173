//! The files of one folder, opened relative to its descriptor.
//!
//! THREAT[SCR-2]: names contain no slash, no symlink is followed, and only regular files of a
//! limited size are read. Opening a pipe does not block.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt as _},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use codexec_files::FileStamp;
use nix::{
    errno::Errno,
    fcntl::{OFlag, openat, renameat},
    sys::stat::{Mode, mkdirat},
    unistd::{UnlinkatFlags, unlinkat},
};

/// Makes the names of temporary files differ.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// The maximum depth of a folder that is removed. Our own have three levels, but people may add
/// more.
const MAX_DEPTH: usize = 32;

#[derive(Debug)]
pub(crate) struct Dir {
    handle: OwnedFd,
}

/// The reason why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("it is not a regular file (a symlink, folder or device)")]
    NotRegular,
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    #[error("it is not valid UTF-8")]
    NotText,
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

impl Dir {
    /// Opens the folder of the library. The user has named it, so it may be a symlink.
    pub(crate) fn open(path: &Path) -> io::Result<Dir> {
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(path)?;
        Ok(Dir { handle: file.into() })
    }

    /// Opens a subfolder. Returns `None` if it does not exist.
    pub(crate) fn enter(&self, name: &str) -> Result<Option<Dir>, FileError> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => Ok(Some(Dir { handle })),
            Err(Errno::ENOENT) => Ok(None),
            Err(Errno::ENOTDIR | Errno::ELOOP) => Err(FileError::NotRegular),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }

    /// Opens a subfolder, and creates it if missing.
    pub(crate) fn enter_or_create(&self, name: &str) -> io::Result<Dir> {
        match mkdirat(&self.handle, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        match self.enter(name) {
            Ok(Some(dir)) => Ok(dir),
            Ok(None) => Err(io::ErrorKind::NotFound.into()),
            Err(err) => Err(io::Error::other(err)),
        }
    }

    pub(crate) fn read(
        &self,
        name: &str,
        max_bytes: u64,
    ) -> Result<Option<(String, FileStamp)>, FileError> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => File::from(handle),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP | Errno::ENXIO) => return Err(FileError::NotRegular),
            Err(errno) => return Err(io::Error::from(errno).into()),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(FileError::NotRegular);
        }
        let stamp = FileStamp::of(&metadata);
        let mut text = String::new();
        match file.take(max_bytes + 1).read_to_string(&mut text) {
            Ok(bytes) if bytes as u64 > max_bytes => Err(FileError::TooLong(max_bytes)),
            Ok(_) => Ok(Some((text, stamp))),
            Err(err) if err.kind() == io::ErrorKind::InvalidData => Err(FileError::NotText),
            Err(err) => Err(err.into()),
        }
    }

    /// Replaces a file atomically. Relative to the descriptor, unlike `private_files::replace`, so
    /// that no symlink in place of a folder leads elsewhere.
    pub(crate) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let serial = WRITES.fetch_add(1, Ordering::Relaxed);
        let temporary = format!(".{name}.{}.{serial}.new", std::process::id());
        // Removes the file of a dead process that had the same process id.
        let _ = self.remove(&temporary);
        let flags =
            OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let written = (|| {
            let handle = openat(&self.handle, temporary.as_str(), flags, owner_only())?;
            let mut file = File::from(handle);
            file.write_all(text.as_bytes())?;
            self.rename(&temporary, name)
        })();
        if written.is_err() {
            let _ = self.remove(&temporary);
        }
        written
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Removes a file, if it exists.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.handle, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes a file or a folder; of a symlink, the link and not its target.
    pub(crate) fn remove_tree(&self, name: &str) -> io::Result<()> {
        self.remove_deep(name, MAX_DEPTH)
    }

    fn remove_deep(&self, name: &str, left: usize) -> io::Result<()> {
        let dir = match self.enter(name) {
            Ok(Some(dir)) => dir,
            Ok(None) => return Ok(()),
            Err(_) => return self.remove(name),
        };
        let left = left.checked_sub(1);
        let left = left.ok_or_else(|| io::Error::other("folders are nested too deeply"))?;
        for inner in dir.names()? {
            dir.remove_deep(&inner, left)?;
        }
        Ok(unlinkat(&self.handle, name, UnlinkatFlags::RemoveDir)?)
    }

    /// Returns the stamp of a path below this folder, or `None` if `stat` fails.
    pub(crate) fn stamp(&self, path: &str) -> Option<FileStamp> {
        FileStamp::read_at(&self.handle, path)
    }

    /// Lists the folder in order. Names that are not UTF-8 are skipped.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let again = openat(&self.handle, ".", OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())?;
        let mut names = Vec::new();
        for entry in nix::dir::Dir::from_fd(again)?.iter() {
            if let Ok(name) = entry?.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

fn owner_only() -> Mode {
    Mode::S_IRUSR | Mode::S_IWUSR
}
