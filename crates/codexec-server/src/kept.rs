//! The files that executions left, in folders that nobody but us writes. Names in them come from
//! guests, and paths to them from clients: neither is believed.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

/// The longest file that is read out.
pub(crate) const MAX_BYTES: u64 = 8 << 20;
/// How many files a list has.
const MAX_FILES: usize = 1_000;
const MAX_DEPTH: usize = 32;

#[derive(Debug, thiserror::Error)]
pub(crate) enum KeptError {
    #[error("there is no such file")]
    Missing,
    #[error("it has {bytes} bytes; at most {MAX_BYTES} are read")]
    TooLong { bytes: u64 },
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
}

/// A file below the folder: its path from there, and its length.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// One file, by the names of the directories to it and its own. No link is followed on the way.
pub(crate) fn read(folder: &Path, names: &[impl AsRef<Path>]) -> Result<Vec<u8>, KeptError> {
    let (name, directories) = names.split_last().ok_or(KeptError::Missing)?;
    let none = Mode::empty();
    let directory = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_PATH;
    let mut at: OwnedFd = open(folder, directory, none).map_err(failed)?;
    for name in directories {
        at = openat(&at, checked(name.as_ref())?, directory, none).map_err(failed)?;
    }
    // What is no regular file must not keep us waiting before we can see that.
    let file = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let file = File::from(openat(&at, checked(name.as_ref())?, file, none).map_err(failed)?);
    let about = file.metadata().map_err(KeptError::Unreadable)?;
    if !about.is_file() {
        return Err(KeptError::Missing);
    }
    let bytes = about.len();
    if bytes > MAX_BYTES {
        return Err(KeptError::TooLong { bytes });
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content).map_err(KeptError::Unreadable)?;
    Ok(content)
}

/// What is kept, in order. A folder that is not there keeps nothing.
pub(crate) fn list(folder: &Path) -> Vec<Kept> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let Ok(entries) = folder.join(&below).read_dir() else { continue };
        for entry in entries.flatten() {
            if found.len() + folders.len() >= MAX_FILES {
                break;
            }
            let path = below.join(entry.file_name());
            // Of the entry itself: links are not followed.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && path.components().count() < MAX_DEPTH => {
                    folders.push(path);
                }
                Ok(kind) if kind.is_file() => {
                    let bytes = entry.metadata().map_or(0, |about| about.len());
                    found.push(Kept { path, bytes });
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// One name and nothing else: not empty, not `.` or `..`, without `/`.
fn checked(name: &Path) -> Result<&Path, KeptError> {
    let mut components = name.components();
    match (components.next(), components.next()) {
        (Some(std::path::Component::Normal(only)), None) if only == name.as_os_str() => Ok(name),
        _ => Err(KeptError::Missing),
    }
}

/// What is not there, and what stands in the way of our rules, is told alike.
fn failed(errno: Errno) -> KeptError {
    match errno {
        Errno::ENOENT
        | Errno::ELOOP
        | Errno::ENOTDIR
        | Errno::ENAMETOOLONG
        | Errno::EINVAL
        | Errno::ENXIO => KeptError::Missing,
        other => KeptError::Unreadable(other.into()),
    }
}

#[cfg(test)]
mod tests;
