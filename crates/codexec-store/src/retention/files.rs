//! The files of the home that are ours to remove. No link is followed, and none is removed.

use std::{
    fs::{self, DirEntry},
    path::{Path, PathBuf},
    time::SystemTime,
};

use codexec_types::{ExecutionId, SessionId, parse_time};

use super::{DAY, Retention};
use crate::journal::is_regular;

/// How many files one look at a folder sees.
const FILES_MAX: usize = 200_000;

const DEPTH_MAX: usize = 40;

/// A log file that is older than anything in it may be.
pub(super) struct OldLog {
    pub(super) path: PathBuf,
    pub(super) session: Option<String>,
    pub(super) day: SystemTime,
}

/// By their names; files of sessions by when they were last written. A day that has yet to come is
/// not old.
pub(super) fn old_logs(home: &Path, retention: &Retention, now: SystemTime) -> Vec<OldLog> {
    let mut old = Vec::new();
    for entry in entries(&home.join("logs")) {
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
            let Some(day) = written(&entry) else { continue };
            if now.duration_since(day).is_ok_and(|age| age > retention.session) {
                old.push(OldLog { path, session: Some(session.as_str().to_owned()), day });
            }
        }
    }
    old
}

/// The executions whose folders nobody wrote to since then.
pub(super) fn old_artifacts(home: &Path, then: SystemTime) -> Vec<String> {
    let is_old = |entry: &DirEntry| written(entry).is_some_and(|at| at < then);
    let folders = entries(&home.join("artifacts")).into_iter().filter(is_old);
    let ids = folders.filter_map(|entry| ExecutionId::parse(entry.file_name().to_str()?));
    ids.map(|id| id.as_str().to_owned()).collect()
}

/// Says whether there was one.
pub(super) fn remove_file(path: &Path) -> bool {
    is_regular(path) && fs::remove_file(path).is_ok()
}

/// Says whether there was one.
///
/// THREAT[LOG-1]: what stands at its place may be a link, put there to have something else removed.
pub(super) fn remove_artifacts(home: &Path, id: &str) -> bool {
    let folder = home.join("artifacts");
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_dir());
    let Some(id) = ExecutionId::parse(id) else { return false };
    let path = folder.join(id.as_str());
    // Below it a link is removed, and not what it leads to.
    is_folder(&folder) && is_folder(&path) && fs::remove_dir_all(&path).is_ok()
}

/// What log files, the search index and kept files take.
pub(super) fn bytes(home: &Path) -> u64 {
    let index = fs::symlink_metadata(home.join("search.db")).map_or(0, |about| about.len());
    index + below(&home.join("logs")) + below(&home.join("artifacts"))
}

fn below(folder: &Path) -> u64 {
    let mut folders = vec![(folder.to_owned(), 0)];
    let (mut bytes, mut seen) = (0, 0);
    while let Some((folder, depth)) = folders.pop() {
        for entry in entries(&folder) {
            seen += 1;
            if seen > FILES_MAX {
                return bytes;
            }
            // Of the entry itself: links are not followed.
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() && depth < DEPTH_MAX {
                folders.push((entry.path(), depth + 1));
            } else if about.is_file() {
                bytes += about.len();
            }
        }
    }
    bytes
}

fn entries(folder: &Path) -> Vec<DirEntry> {
    if !fs::symlink_metadata(folder).is_ok_and(|about| about.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.flatten().take(FILES_MAX).collect()
}

fn written(entry: &DirEntry) -> Option<SystemTime> {
    entry.metadata().ok()?.modified().ok()
}
