//! The log files: `executions-<day>.jsonl` and `session-<id>.jsonl`, a line for each entry.
//!
//! The rows of the database are the source of truth. A store appends each line once: see
//! [`Journal::append`] for lines that a file may already have.

mod file;
mod prune;

pub(crate) use prune::{is_regular_file, remove_lines};

use std::{
    collections::HashSet,
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use codexec_files::{FileLock, private_files};
use codexec_types::{SessionId, format_utc_day};

use crate::{Durability, execution::ExecutionRecord, log_line};

#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    durability: Durability,
}

/// The lines to append to one file.
pub(crate) struct FileLines {
    pub(crate) name: String,
    /// The prefix that identifies the line, the line, and whether the file may already have it.
    pub(crate) lines: Vec<(String, String, bool)>,
}

/// One line of a log file.
pub(crate) struct LogLine {
    pub(crate) file: String,
    /// The prefix that identifies the line.
    pub(crate) prefix: String,
    pub(crate) text: String,
}

impl Journal {
    pub(crate) fn new(folder: PathBuf, durability: Durability) -> Journal {
        Journal { folder, durability }
    }

    /// Waits for the lock on the log files, which is held until the returned lock is dropped.
    pub(crate) fn lock(&self) -> io::Result<FileLock> {
        lock(&self.folder)
    }

    /// Appends the lines that the file does not have yet. The caller holds the lock.
    pub(crate) fn append(&self, file: &FileLines) -> io::Result<()> {
        let path = self.folder.join(&file.name);
        let mut log = file::LogFile::open(&path)?;
        let uncertain: HashSet<&str> = file
            .lines
            .iter()
            .filter(|(_, _, may_exist)| *may_exist)
            .map(|(prefix, _, _)| prefix.as_str())
            .collect();
        let existing =
            if uncertain.is_empty() { HashSet::new() } else { log.find_prefixes(&uncertain)? };
        let mut text = String::new();
        for (_, line, _) in file.lines.iter().filter(|(prefix, _, _)| !existing.contains(prefix)) {
            text.push_str(line);
            text.push('\n');
        }
        log.append(text.as_bytes())?;
        if self.durability == Durability::Power {
            log.sync(&self.folder)?;
        }
        Ok(())
    }
}

impl LogLine {
    /// Makes the line of a session that the store has rendered.
    pub(crate) fn of_session(session: &str, line: String) -> LogLine {
        LogLine { file: session_file(session), prefix: line.clone(), text: line }
    }

    pub(crate) fn of_execution(execution: &ExecutionRecord) -> LogLine {
        let summary = &execution.summary;
        let session = summary.session.as_ref().map(SessionId::as_str);
        LogLine {
            file: execution_file(session, summary.started),
            prefix: log_line::prefix(summary.id.as_str()),
            text: log_line::render(execution),
        }
    }
}

/// Creates the folder if missing, and takes the lock on its files. Stricter than
/// `private_files::make_folder`: executions are deleted from this folder, so it must be our own.
pub(crate) fn lock(folder: &Path) -> io::Result<FileLock> {
    private_files::make_folder(folder)?;
    let metadata = std::fs::symlink_metadata(folder)?;
    if !metadata.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "the log folder is a symlink"));
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    }
    FileLock::acquire(&folder.join(".lock"))
}

/// Returns the name of the log file of an execution.
pub(crate) fn execution_file(session: Option<&str>, started: SystemTime) -> String {
    match session {
        Some(session) => session_file(session),
        None => format!("executions-{}.jsonl", format_utc_day(started)),
    }
}

pub(crate) fn session_file(session: &str) -> String {
    format!("session-{session}.jsonl")
}

#[cfg(test)]
mod tests;
