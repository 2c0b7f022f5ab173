//! Artifact files of executions, in folders that only codexec writes to. File names come from
//! guests and paths from clients, so neither is trusted.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;

/// Maximum length of a file that is read.
pub(crate) const MAX_BYTES: u64 = 8 << 20;
/// Maximum number of files in a list.
const MAX_FILES: usize = 1_000;
const MAX_DEPTH: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    #[error("there is no such file")]
    Missing,
    #[error("it has {bytes} bytes; at most {MAX_BYTES} are read")]
    TooLong { bytes: u64 },
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
}

/// A file below the folder: its relative path, and its length.
#[derive(Debug, PartialEq, Eq)]
pub struct ArtifactFile {
    pub path: PathBuf,
    pub bytes: u64,
}

/// Reads one file, given the names of its directories and its own. No symlink is followed.
pub(crate) fn read(folder: &Path, names: &[impl AsRef<Path>]) -> Result<Vec<u8>, ArtifactError> {
    let (name, directories) = names.split_last().ok_or(ArtifactError::Missing)?;
    let none = Mode::empty();
    let directory = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_PATH;
    let mut at: OwnedFd = open(folder, directory, none).map_err(from_errno)?;
    for name in directories {
        at = openat(&at, check_name(name.as_ref())?, directory, none).map_err(from_errno)?;
    }
    // O_NONBLOCK: opening a FIFO or device must not block before its type is known.
    let file = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let file = File::from(openat(&at, check_name(name.as_ref())?, file, none).map_err(from_errno)?);
    let about = file.metadata().map_err(ArtifactError::Unreadable)?;
    if !about.is_file() {
        return Err(ArtifactError::Missing);
    }
    let bytes = about.len();
    if bytes > MAX_BYTES {
        return Err(ArtifactError::TooLong { bytes });
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content).map_err(ArtifactError::Unreadable)?;
    Ok(content)
}

/// Lists the files, sorted. A missing folder has none.
pub(crate) fn list(folder: &Path) -> Vec<ArtifactFile> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let Ok(entries) = folder.join(&below).read_dir() else { continue };
        for entry in entries.flatten() {
            if found.len() + folders.len() >= MAX_FILES {
                break;
            }
            let path = below.join(entry.file_name());
            // The type of the entry itself: symlinks are not followed.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && path.components().count() < MAX_DEPTH => {
                    folders.push(path);
                }
                Ok(kind) if kind.is_file() => {
                    let bytes = entry.metadata().map_or(0, |about| about.len());
                    found.push(ArtifactFile { path, bytes });
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Accepts a single name: not empty, not `.` or `..`, without `/`.
fn check_name(name: &Path) -> Result<&Path, ArtifactError> {
    let mut components = name.components();
    match (components.next(), components.next()) {
        (Some(std::path::Component::Normal(only)), None) if only == name.as_os_str() => Ok(name),
        _ => Err(ArtifactError::Missing),
    }
}

/// Reports files that break the rules as missing.
fn from_errno(errno: Errno) -> ArtifactError {
    match errno {
        Errno::ENOENT
        | Errno::ELOOP
        | Errno::ENOTDIR
        | Errno::ENAMETOOLONG
        | Errno::EINVAL
        | Errno::ENXIO => ArtifactError::Missing,
        other => ArtifactError::Unreadable(other.into()),
    }
}

#[cfg(test)]
mod tests;
