//! Files of one folder, reached through its open handle.
//!
//! THREAT[SCR-2]: no name here has a slash in it, no link is followed, and only regular files of a
//! bounded size are read, without waiting for a pipe's other end.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    },
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime},
};

use codexec_types::from_unix_ms;

use nix::{
    errno::Errno,
    fcntl::{AtFlags, OFlag, openat, renameat},
    sys::stat::{FileStat, Mode, fstatat, mkdirat},
    unistd::{UnlinkatFlags, unlinkat},
};

/// Makes the names of temporary files differ.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// More than the kernel's clock for files ever stands still.
const CLOCK_STEP: Duration = Duration::from_millis(50);

/// Ours are three deep; people may put more there.
const MAX_DEPTH: usize = 32;

#[derive(Debug)]
pub(crate) struct Dir {
    handle: OwnedFd,
}

/// Tells one state of a file from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("it is a link, a folder or another thing that is no plain file")]
    NotPlain,
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    #[error("it is not text in UTF-8")]
    NotText,
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
}

impl Dir {
    /// The folder of the library, which the user has named: it may be a link.
    pub(crate) fn open(path: &Path) -> io::Result<Dir> {
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).custom_flags(OFlag::O_DIRECTORY.bits()).open(path)?;
        Ok(Dir { handle: file.into() })
    }

    /// `None`: there is nothing of this name.
    pub(crate) fn enter(&self, name: &str) -> Result<Option<Dir>, Unfit> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => Ok(Some(Dir { handle })),
            Err(Errno::ENOENT) => Ok(None),
            Err(Errno::ENOTDIR | Errno::ELOOP) => Err(Unfit::NotPlain),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }

    /// Enters a folder, and makes it if need be.
    pub(crate) fn make(&self, name: &str) -> io::Result<Dir> {
        match mkdirat(&self.handle, name, Mode::S_IRWXU) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        match self.enter(name) {
            Ok(Some(dir)) => Ok(dir),
            Ok(None) => Err(io::ErrorKind::NotFound.into()),
            Err(unfit) => Err(io::Error::other(unfit)),
        }
    }

    pub(crate) fn read(
        &self,
        name: &str,
        max_bytes: u64,
    ) -> Result<Option<(String, Stamp)>, Unfit> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = match openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => File::from(handle),
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ELOOP | Errno::ENXIO) => return Err(Unfit::NotPlain),
            Err(errno) => return Err(io::Error::from(errno).into()),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(Unfit::NotPlain);
        }
        let stamp = Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        let mut text = String::new();
        match file.take(max_bytes + 1).read_to_string(&mut text) {
            Ok(bytes) if bytes as u64 > max_bytes => Err(Unfit::TooLong(max_bytes)),
            Ok(_) => Ok(Some((text, stamp))),
            Err(err) if err.kind() == io::ErrorKind::InvalidData => Err(Unfit::NotText),
            Err(err) => Err(err.into()),
        }
    }

    /// Replaces the file in one step, or leaves it as it was.
    pub(crate) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let serial = WRITES.fetch_add(1, Ordering::Relaxed);
        let temporary = format!(".{name}.{}.{serial}.new", std::process::id());
        // Left behind by a process of this number that is no more.
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

    /// Nothing happens if it is not there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.handle, name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Takes away whatever is there, a link itself and not what it leads to.
    pub(crate) fn remove_tree(&self, name: &str) -> io::Result<()> {
        self.remove_deep(name, MAX_DEPTH)
    }

    fn remove_deep(&self, name: &str, left: usize) -> io::Result<()> {
        let dir = match self.enter(name) {
            Ok(Some(dir)) => dir,
            Ok(None) => return Ok(()),
            Err(_) => return self.remove(name),
        };
        let left = left.checked_sub(1).ok_or_else(|| io::Error::other("folders are too deep"))?;
        for inner in dir.names()? {
            dir.remove_deep(&inner, left)?;
        }
        Ok(unlinkat(&self.handle, name, UnlinkatFlags::RemoveDir)?)
    }

    /// Of a path below this folder; `None` if nothing can be known of it.
    pub(crate) fn stamp(&self, path: &str) -> Option<Stamp> {
        let stat = fstatat(&self.handle, path, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        Some(Stamp::of(&stat))
    }

    /// Everything that stands in it and has a name that we could have given.
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

impl Stamp {
    pub(crate) fn bytes(self) -> u64 {
        self.bytes
    }

    pub(crate) fn changed(self) -> SystemTime {
        let (seconds, nanos) = self.changed;
        from_unix_ms(seconds.saturating_mul(1_000).saturating_add(nanos / 1_000_000))
    }

    /// Whether the file could change once more and still have this stamp: the kernel's clock for
    /// files stands still for some milliseconds.
    pub(crate) fn is_recent(self) -> bool {
        SystemTime::now().duration_since(self.changed()).is_ok_and(|age| age < CLOCK_STEP)
    }

    #[expect(
        clippy::unnecessary_cast,
        reason = "the widths of these numbers differ between machines"
    )]
    fn of(stat: &FileStat) -> Stamp {
        Stamp {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            bytes: u64::try_from(stat.st_size).unwrap_or_default(),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}

fn owner_only() -> Mode {
    Mode::S_IRUSR | Mode::S_IWUSR
}
