//! Files of our own that must be whole or not at all: for their owner alone, replaced in one step,
//! with a checksum in front. What is not exactly so is not read.

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

/// How long a writer waits for another process of ours.
const LOCK_WAIT: Duration = Duration::from_secs(2);
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Makes the names of temporary files differ.
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unfit {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("it is not a plain file of yours that nobody else can write")]
    Foreign,
    #[error("it has more than {0} bytes")]
    TooLong(u64),
    #[error("it is damaged, or made by another version of codexec")]
    Damaged,
}

/// Tells one state of a file from the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

/// One writer at a time, among all processes of ours. Ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// `None`: there is no such file, or nothing can be known of it.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    path.symlink_metadata().ok().map(|metadata| stamp_of(&metadata))
}

/// The body of a file that [`write`] wrote with this `title`; `None` if there is no file.
pub(crate) fn read(
    path: &Path,
    title: &str,
    max_bytes: u64,
) -> Result<Option<(String, Stamp)>, Unfit> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(flags.bits()).open(path) {
        Ok(file) => file,
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(err) if err.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => {
            return Err(Unfit::Foreign);
        }
        Err(err) => return Err(err.into()),
    };
    let metadata = file.metadata()?;
    let is_ours = metadata.is_file()
        && metadata.uid() == geteuid().as_raw()
        && metadata.mode() & 0o022 == 0
        && metadata.nlink() == 1;
    if !is_ours {
        return Err(Unfit::Foreign);
    }
    let mut text = String::new();
    let read = file.take(max_bytes + 1).read_to_string(&mut text);
    match read {
        Ok(length) if length as u64 > max_bytes => return Err(Unfit::TooLong(max_bytes)),
        Ok(_) => {}
        Err(err) if err.kind() == io::ErrorKind::InvalidData => return Err(Unfit::Damaged),
        Err(err) => return Err(err.into()),
    }
    let (head, body) = text.split_once('\n').ok_or(Unfit::Damaged)?;
    if head != header(title, body) {
        return Err(Unfit::Damaged);
    }
    text.drain(..=head.len());
    Ok(Some((text, stamp_of(&metadata))))
}

/// Replaces the file, or leaves it as it was.
pub(crate) fn write(path: &Path, title: &str, body: &str) -> io::Result<Stamp> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_folder(folder)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let serial = WRITES.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".{name}.{}.{serial}.new", std::process::id()));
    // Left behind by a process of this number that is no more.
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

/// Puts a file that cannot be used out of the way, where its owner still finds it.
pub(crate) fn set_aside(path: &Path) -> io::Result<()> {
    std::fs::rename(path, path.with_added_extension("corrupt"))
}

impl Lock {
    /// For the file at `path`; beside it, because that one is replaced.
    pub(crate) async fn of(path: &Path) -> io::Result<Lock> {
        let beside: PathBuf = path.with_added_extension("lock");
        make_folder(beside.parent().ok_or(io::ErrorKind::InvalidInput)?)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(beside)?;
        let deadline = Instant::now() + LOCK_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(std::fs::TryLockError::WouldBlock) if Instant::now() < deadline => {
                    // The kernel tells nobody when a lock is free, but by a thread that hangs.
                    tokio::time::sleep(LOCK_PAUSE).await;
                }
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "another codexec does not let go of it",
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

fn stamp_of(metadata: &std::fs::Metadata) -> Stamp {
    Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        length: metadata.len(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

#[cfg(test)]
mod tests;
