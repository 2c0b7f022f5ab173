//! What a guest did to the directory it worked in. Nothing here follows a link: a guest made
//! them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
};
use std::path::{Path, PathBuf};

use codexec_types::{Artifact, Changes};

/// A file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    bytes: u64,
    modified_ns: i128,
    inode: u64,
    is_dir: bool,
    pub(crate) is_socket: bool,
}

/// How much of a directory is looked at, and how much is listed.
const MAX_SEEN: usize = 50_000;
const MAX_DEPTH: usize = 64;
const MAX_LISTED: usize = 200;
/// What is kept of one execution's files.
const MAX_KEPT_BYTES: u64 = 64 << 20;
const MAX_KEPT_FILES: usize = 1_000;

/// Everything below a directory, by its path from there.
pub(crate) type Files = BTreeMap<PathBuf, Seen>;

pub(crate) fn see(directory: &Path) -> Files {
    let mut seen = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(directory.join(&folder)) else { continue };
        for entry in entries.flatten() {
            if seen.len() >= MAX_SEEN {
                return seen;
            }
            let path = folder.join(entry.file_name());
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() && path.components().count() < MAX_DEPTH {
                folders.push(path.clone());
            }
            let modified_ns =
                i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
            let (bytes, inode, is_dir) = (found.len(), found.ino(), found.is_dir());
            let is_socket = found.file_type().is_socket();
            seen.insert(path, Seen { bytes, modified_ns, inode, is_dir, is_socket });
        }
    }
    seen
}

/// Files only: a directory is there because of what is in it.
pub(crate) fn difference(before: &Files, after: &Files) -> Changes {
    let mut changes = Changes::default();
    let mut listed = 0;
    let mut note = |list: &mut Vec<Artifact>, path: &Path, bytes: u64| {
        listed += 1;
        if listed <= MAX_LISTED {
            list.push(Artifact { path: path.display().to_string(), bytes });
            return;
        }
        changes.left_out += 1;
    };
    let files = |seen: &Seen| !seen.is_dir;
    for (path, now) in after.iter().filter(|(_, seen)| files(seen)) {
        match before.get(path) {
            None => note(&mut changes.created, path, now.bytes),
            Some(then) if then != now => note(&mut changes.modified, path, now.bytes),
            Some(_) => {}
        }
    }
    for (path, then) in before.iter().filter(|(_, seen)| files(seen)) {
        if !after.contains_key(path) {
            note(&mut changes.deleted, path, then.bytes);
        }
    }
    changes
}

/// What a guest has done to a workspace of its own since `before`, and what it is like now. New
/// and changed files are copied to `keep`, as far as there is room for them.
pub(crate) fn collect(workspace: &OwnedFd, before: &Files, keep: &Path) -> (Changes, Files) {
    let directory = path_of(workspace);
    let after = see(&directory);
    let changes = difference(before, &after);
    let mut left = MAX_KEPT_BYTES;
    let is_new = |(path, seen): &(&PathBuf, &Seen)| !seen.is_dir && before.get(*path) != Some(seen);
    for (path, seen) in after.iter().filter(is_new).take(MAX_KEPT_FILES) {
        if seen.bytes <= left {
            match copy(&directory, keep, path) {
                Ok(bytes) => left -= bytes.min(left),
                Err(error) => tracing::debug!(%error, "an artifact was not kept"),
            }
        }
    }
    (changes, after)
}

/// Whether there is nothing in a workspace, which is in memory and waits for no disk.
pub(crate) fn is_empty(workspace: &OwnedFd) -> bool {
    fs::read_dir(path_of(workspace)).is_ok_and(|mut entries| entries.next().is_none())
}

fn path_of(workspace: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", workspace.as_raw_fd()))
}

fn copy(from: &Path, keep: &Path, path: &Path) -> io::Result<u64> {
    let source = from.join(path);
    // Devices and pipes are not even opened.
    if !fs::symlink_metadata(&source)?.is_file() {
        return Ok(0);
    }
    let no_link = 0o400_000;
    let mut source = File::options().read(true).custom_flags(no_link).open(source)?;
    let target = keep.join(path);
    if let Some(parent) = target.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    let mut target = File::options().write(true).create_new(true).mode(0o600).open(target)?;
    io::copy(&mut io::Read::take(&mut source, MAX_KEPT_BYTES), &mut target)
}

#[cfg(test)]
mod tests;
