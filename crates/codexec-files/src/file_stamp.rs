use std::{
    fs::Metadata,
    os::{fd::AsFd, unix::fs::MetadataExt as _},
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::{
    fcntl::AtFlags,
    sys::stat::{FileStat, fstatat},
};

/// Longer than the granularity of the kernel's file timestamps.
const CLOCK_STEP: Duration = Duration::from_millis(50);

/// A file's identity, size and change time, which tell one state of a file from the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds since 1970.
    changed: (i64, i64),
}

impl FileStamp {
    pub fn of(metadata: &Metadata) -> FileStamp {
        FileStamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.size(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns the stamp of a path, or `None` if `stat` fails. Symlinks are not followed.
    pub fn read(path: &Path) -> Option<FileStamp> {
        path.symlink_metadata().ok().map(|metadata| FileStamp::of(&metadata))
    }

    /// Returns the stamp of a path below an open folder, or `None` if `stat` fails. A symlink at
    /// the end of the path is not followed.
    pub fn read_at(folder: impl AsFd, path: &str) -> Option<FileStamp> {
        let stat = fstatat(folder, path, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        Some(FileStamp::of_stat(&stat))
    }

    pub fn bytes(self) -> u64 {
        self.bytes
    }

    /// Returns the change time; for times before 1970, 1970.
    pub fn changed(self) -> SystemTime {
        let (seconds, nanoseconds) = self.changed;
        let since = Duration::new(
            u64::try_from(seconds).unwrap_or_default(),
            u32::try_from(nanoseconds).unwrap_or_default(),
        );
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    }

    /// Returns true if the file could change again and keep this stamp, because timestamps of files
    /// advance only every few milliseconds.
    pub fn is_recent(self) -> bool {
        SystemTime::now().duration_since(self.changed()).is_ok_and(|age| age < CLOCK_STEP)
    }

    #[expect(
        clippy::unnecessary_cast,
        reason = "the widths of these numbers differ between machines"
    )]
    fn of_stat(stat: &FileStat) -> FileStamp {
        FileStamp {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            bytes: u64::try_from(stat.st_size).unwrap_or_default(),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}

#[cfg(test)]
mod tests;
