//! Our own files in the home directory. No symlink is followed or removed.

use std::{
    fs::{self, DirEntry},
    path::{Path, PathBuf},
    time::SystemTime,
};

use codexec_types::{ExecutionId, SessionId, parse_time};

use super::{DAY, Retention};
use crate::journal::is_regular_file;

/// The maximum number of files that are read from a folder.
const FILES_MAX: usize = 200_000;

const DEPTH_MAX: usize = 40;

/// A log file that is older than its entries may be.
pub(crate) struct OldLog {
    pub(crate) path: PathBuf,
    pub(crate) session: Option<String>,
    pub(crate) day: SystemTime,
}

/// Lists old log files: daily ones by the date in their name, those of sessions by their
/// modification time. A date in the future is not old.
pub(crate) fn list_old_logs(home: &Path, retention: &Retention, now: SystemTime) -> Vec<OldLog> {
    let mut old = Vec::new();
    for entry in read_folder(&home.join("logs")) {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".jsonl")) else {
            continue;
        };
        if let Some(day) = name.strip_prefix("executions-").and_then(parse_time) {
            let keep = retention.success.max(retention.failure) + DAY;
            if now.duration_since(day).is_ok_and(|age| age > keep) {
                old.push(OldLog { path, session: None, day });
            }
        } else if let Some(session) = name.strip_prefix("session-").and_then(SessionId::parse) {
            let Some(day) = modified_at(&entry) else { continue };
            if now.duration_since(day).is_ok_and(|age| age > retention.session) {
                old.push(OldLog { path, session: Some(session.as_str().to_owned()), day });
            }
        }
    }
    old
}

/// Lists the executions whose artifact folders were not modified since `then`.
pub(crate) fn list_old_artifacts(home: &Path, then: SystemTime) -> Vec<String> {
    let is_old = |entry: &DirEntry| modified_at(entry).is_some_and(|at| at < then);
    let folders = read_folder(&home.join("artifacts")).into_iter().filter(is_old);
    let ids = folders.filter_map(|entry| ExecutionId::parse(entry.file_name().to_str()?));
    ids.map(|id| id.as_str().to_owned()).collect()
}

/// Removes a regular file. Returns true if it existed.
pub(crate) fn remove_file(path: &Path) -> bool {
    is_regular_file(path) && fs::remove_file(path).is_ok()
}

/// Removes an execution's artifact folder. Returns true if it existed.
///
/// THREAT[LOG-1]: the path may be a symlink, planted to have something else removed.
pub(crate) fn remove_artifacts(home: &Path, id: &str) -> bool {
    let folder = home.join("artifacts");
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|stat| stat.is_dir());
    let Some(id) = ExecutionId::parse(id) else { return false };
    let path = folder.join(id.as_str());
    // `remove_dir_all` removes symlinks below the folder, not their targets.
    is_folder(&folder) && is_folder(&path) && fs::remove_dir_all(&path).is_ok()
}

/// Returns the size of the log files and the artifacts.
pub(crate) fn used_bytes(home: &Path) -> u64 {
    folder_bytes(&home.join("logs")) + folder_bytes(&home.join("artifacts"))
}

fn folder_bytes(folder: &Path) -> u64 {
    let mut folders = vec![(folder.to_owned(), 0)];
    let (mut bytes, mut seen) = (0, 0);
    while let Some((folder, depth)) = folders.pop() {
        for entry in read_folder(&folder) {
            seen += 1;
            if seen > FILES_MAX {
                return bytes;
            }
            // `DirEntry::metadata` does not follow symlinks.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && depth < DEPTH_MAX {
                folders.push((entry.path(), depth + 1));
            } else if metadata.is_file() {
                bytes += metadata.len();
            }
        }
    }
    bytes
}

fn read_folder(folder: &Path) -> Vec<DirEntry> {
    if !fs::symlink_metadata(folder).is_ok_and(|stat| stat.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.flatten().take(FILES_MAX).collect()
}

fn modified_at(entry: &DirEntry) -> Option<SystemTime> {
    entry.metadata().ok()?.modified().ok()
}
