//! Resolution of a working directory's path.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use codexec_types::{PolicyRefusal, ResolvedDir, WorkingDirPolicy};

use crate::escaped_text::escape_name;

/// Timeout for a directory that hangs, e.g. on a network file system.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a directory cannot be used: the field, what is wrong with it, what to do.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    #[error("working_dir: {} is not an absolute path; write it from `/` or `~/` on", quote_path(.0))]
    Relative(PathBuf),
    #[error("working_dir: {} contains `..`; write the absolute path without it", quote_path(.0))]
    Parent(PathBuf),
    #[error("working_dir: {} has a NUL character; remove it", quote_path(.0))]
    Nul(PathBuf),
    #[error("working_dir: {} is not a directory; name the directory it is in", quote_path(.0))]
    NotADirectory(PathBuf),
    #[error("working_dir: {} does not exist; name a directory that does", quote_path(.0))]
    Missing(PathBuf),
    #[error("working_dir: {} cannot be read; name another directory", quote_path(.0))]
    Unreadable(PathBuf, #[source] io::Error),
    #[error("working_dir: {} did not answer within {} s; name another directory", quote_path(.0), LOOKUP_TIMEOUT.as_secs())]
    Slow(PathBuf),
    #[error(transparent)]
    Refused(PolicyRefusal),
}

impl DirError {
    /// Returns a stable code for clients and metrics.
    pub fn code(&self) -> &'static str {
        match self {
            DirError::Relative(_)
            | DirError::Parent(_)
            | DirError::Nul(_)
            | DirError::NotADirectory(_) => "INVALID_ARGS",
            DirError::Missing(_) | DirError::Unreadable(..) | DirError::Slow(_) => {
                "WORKING_DIR_NOT_FOUND"
            }
            DirError::Refused(refusal) => refusal.code(),
        }
    }
}

/// Resolves a path to the directory it refers to now. Symlinks are followed once, here.
pub async fn resolve_dir(path: PathBuf, files: &WorkingDirPolicy) -> Result<ResolvedDir, DirError> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(DirError::Nul(path));
    }
    let path = expand_home(path, files.home.as_deref());
    if !path.is_absolute() {
        return Err(DirError::Relative(path));
    }
    if path.components().any(|component| component == Component::ParentDir) {
        return Err(DirError::Parent(path));
    }
    let looked = path.clone();
    let looking = tokio::task::spawn_blocking(move || stat_dir(&looked));
    let found = match tokio::time::timeout(LOOKUP_TIMEOUT, looking).await {
        Ok(Ok(found)) => found,
        Ok(Err(broken)) => Err(io::Error::other(broken)),
        Err(_) => return Err(DirError::Slow(path)),
    };
    let error = match found {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    // A client that may not use the directory must not learn whether it exists, either.
    if let Err(why) = files.check(&path) {
        let path = escape_name(&path.to_string_lossy()).into();
        return Err(DirError::Refused(PolicyRefusal::WorkingDir { path, why }));
    }
    Err(match error.kind() {
        io::ErrorKind::NotFound => DirError::Missing(path),
        io::ErrorKind::NotADirectory => DirError::NotADirectory(path),
        _ => DirError::Unreadable(path, error),
    })
}

/// Replaces `~` at the start of a path by the user's home directory.
fn expand_home(path: PathBuf, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => home.join(below),
        _ => path,
    }
}

fn stat_dir(path: &Path) -> io::Result<ResolvedDir> {
    let path = path.canonicalize()?;
    let about = path.symlink_metadata()?;
    if !about.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let (device, inode, uid, gid) = (about.dev(), about.ino(), about.uid(), about.gid());
    Ok(ResolvedDir { path, device, inode, uid, gid })
}

fn quote_path(path: &Path) -> String {
    format!("\"{}\"", escape_name(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests;
