//! codexec's own data files: private to their owner, replaced atomically, with a checksum in the
//! first line. A file that violates this is not read.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use nix::{fcntl::OFlag, unistd::geteuid};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// How long a writer waits for another codexec process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Makes the names of temporary files unique.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// The reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivateFileError {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is not a regular file that you own and only you can write")]
    Foreign,
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    #[error("it is damaged, or written by another version of codexec")]
    Damaged,
}

/// Identifies one version of a file, to detect changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FileVersion {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

/// A lock on a file among all codexec processes. Released on drop.
#[derive(Debug)]
pub(crate) struct FileLock {
    _file: File,
}

/// Returns the file's stamp; `None` if the file is missing or inaccessible.
pub(crate) fn stamp(path: &Path) -> Option<FileVersion> {
    path.symlink_metadata().ok().map(|metadata| stamp_of(&metadata))
}

/// Reads the body of a file that [`write()`] wrote with this `title`; `None` if there is no file.
pub(crate) fn read(
    path: &Path,
    title: &str,
    max_bytes: u64,
) -> Result<Option<(String, FileVersion)>, PrivateFileError> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) if err.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => {
            return Err(PrivateFileError::Foreign);
        }
        Err(err) => return Err(err.into()),
    };
    let metadata = file.metadata()?;
    let is_ours = metadata.is_file()
        && metadata.uid() == geteuid().as_raw()
        && metadata.mode() & 0o022 == 0
        && metadata.nlink() == 1;
    if !is_ours {
        return Err(PrivateFileError::Foreign);
    }
    let mut text = String::new();
    let read = file.take(max_bytes + 1).read_to_string(&mut text);
    match read {
        Ok(length) if length as u64 > max_bytes => {
            return Err(PrivateFileError::TooLong(max_bytes));
        }
        Ok(_) => {}
        Err(err) if err.kind() == io::ErrorKind::InvalidData => {
            return Err(PrivateFileError::Damaged);
        }
        Err(err) => return Err(err.into()),
    }
    let (head, body) = text.split_once('\n').ok_or(PrivateFileError::Damaged)?;
    if head != header(title, body) {
        return Err(PrivateFileError::Damaged);
    }
    text.drain(..=head.len());
    Ok(Some((text, stamp_of(&metadata))))
}

/// Replaces the file atomically.
pub(crate) fn write(path: &Path, title: &str, body: &str) -> io::Result<FileVersion> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_folder(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let serial = WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{name}.{}.{serial}.new", std::process::id()));
    // A dead process with the same pid may have left one behind.
    let _ = std::fs::remove_file(&temporary);
    let written = (|| {
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(header(title, body).as_bytes())?;
        file.write_all(b"\n")?;
        file.write_all(body.as_bytes())?;
        file.sync_data()?;
        std::fs::rename(&temporary, path)?;
        Ok(stamp_of(&file.metadata()?))
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Renames an unusable file to `*.corrupt`, so that the user can still find it.
pub(crate) fn set_aside(path: &Path) -> io::Result<()> {
    std::fs::rename(path, path.with_added_extension("corrupt"))
}

impl FileLock {
    /// Locks the file at `path`, through a lock file next to it: the file itself is replaced.
    pub(crate) async fn acquire(path: &Path) -> io::Result<FileLock> {
        let lock_path: PathBuf = path.with_added_extension("lock");
        make_folder(lock_path.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(lock_path)?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(FileLock { _file: file }),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                    // `flock` has no async wait, so this polls.
                    tokio::time::sleep(LOCK_POLL_INTERVAL).await;
                }
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "another codexec process holds the lock",
                    ));
                }
                Err(std::fs::TryLockError::Error(err)) => return Err(err),
            }
        }
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn header(title: &str, body: &str) -> String {
    format!("codexec {title} {}", hex(&Sha256::digest(body.as_bytes())))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn stamp_of(metadata: &std::fs::Metadata) -> FileVersion {
    FileVersion {
        device: metadata.dev(),
        inode: metadata.ino(),
        length: metadata.len(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

#[cfg(test)]
mod tests;
