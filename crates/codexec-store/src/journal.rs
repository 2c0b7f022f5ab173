//! The log files: `executions-<day>.jsonl` and `session-<id>.jsonl`, a line for each entry.
//!
//! The database rows are the source of truth. An entry is in the table `unlogged` from its
//! beginning until it has ended and its line is written. A server that dies in between leaves the
//! entry there, and the server that takes it over checks the file first. So every entry is in its
//! file exactly once.

mod file;
mod prune;

pub(crate) use prune::{is_regular_file, remove_lines};

use std::{
    collections::{BTreeSet, HashSet},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use codexec_files::{FileLock, private_files};
use codexec_types::format_utc_day;
use rusqlite::Connection;

use crate::{Durability, database::Database, log_line, owner, read};

/// How many entries are written at once.
const BATCH: u32 = 256;

/// About how many bytes are written at once.
const BATCH_BYTES: usize = 4 << 20;

/// The entries of these owners, except for running executions.
const DUE: &str = "unlogged WHERE owner IN (SELECT value FROM json_each(?1))
    AND NOT EXISTS (SELECT 1 FROM executions WHERE seq = execution AND status = 'running')";

#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    owner: Arc<str>,
    owners: owner::OwnerFolder,
    durability: Durability,
    /// Our own entries in `unlogged` whose lines may already be in their files.
    uncertain: BTreeSet<i64>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// An entry that is not in its file yet.
struct UnloggedEntry {
    number: i64,
    owner: String,
    execution: Option<i64>,
    session: Option<String>,
    line: Option<String>,
}

/// The lines to append to one file.
struct FileLines {
    name: String,
    /// The prefix that identifies the line, the line, and whether the file may already have it.
    lines: Vec<(String, String, bool)>,
}

impl Journal {
    pub(crate) fn new(
        database: &Path,
        owner: Arc<str>,
        owners: owner::OwnerFolder,
        durability: Durability,
    ) -> Journal {
        let folder = database.with_file_name("logs");
        Journal { folder, owner, owners, durability, uncertain: BTreeSet::new() }
    }

    /// Writes all our entries; with `take_over`, also those of dead servers.
    pub(crate) fn write(
        &mut self,
        reader: &Connection,
        database: &Database,
        take_over: bool,
    ) -> Result<(), JournalError> {
        loop {
            let owners = if take_over {
                self.us_and_dead_servers(reader)?
            } else {
                vec![self.owner.to_string()]
            };
            if !self.has_due(reader, &owners)? {
                return Ok(());
            }
            let _lock = self.lock()?;
            // Reads again under the lock: another server may have written the entries.
            let (numbers, files) = self.read_batch(reader, &owners)?;
            if numbers.is_empty() {
                return Ok(());
            }
            self.write_batch(database, &numbers, &files)?;
        }
    }

    /// Reads the next batch: the numbers of the entries, and their lines.
    fn read_batch(
        &self,
        reader: &Connection,
        owners: &[String],
    ) -> Result<(Vec<i64>, Vec<FileLines>), JournalError> {
        // One transaction for all reads, because its start and end cost as much as a row.
        let _transaction = reader.unchecked_transaction()?;
        let mut files: Vec<FileLines> = Vec::new();
        let (mut numbers, mut bytes) = (Vec::new(), 0);
        for entry in read_pending(reader, owners)? {
            if bytes > BATCH_BYTES {
                break;
            }
            numbers.push(entry.number);
            let may_exist = self.uncertain.contains(&entry.number) || *entry.owner != *self.owner;
            let Some((name, prefix, line)) = render(reader, entry)? else { continue };
            bytes += line.len();
            let line = (prefix, line, may_exist);
            match files.iter_mut().find(|file| file.name == name) {
                Some(file) => file.lines.push(line),
                None => files.push(FileLines { name, lines: vec![line] }),
            }
        }
        Ok((numbers, files))
    }

    fn write_batch(
        &mut self,
        database: &Database,
        numbers: &[i64],
        files: &[FileLines],
    ) -> Result<(), JournalError> {
        self.uncertain.extend(numbers);
        for file in files {
            self.append(file)?;
        }
        let mut open = database.lock();
        let list = serde_json::to_string(numbers).unwrap_or_default();
        let sql = "DELETE FROM unlogged WHERE number IN (SELECT value FROM json_each(?1))";
        open.conn.prepare_cached(sql)?.execute([list])?;
        open.checkpointer.count_commit();
        self.uncertain.retain(|number| !numbers.contains(number));
        Ok(())
    }

    fn append(&self, file: &FileLines) -> io::Result<()> {
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

    /// Lists our own id and the dead servers that have entries.
    fn us_and_dead_servers(&self, reader: &Connection) -> Result<Vec<String>, JournalError> {
        let mut statement = reader.prepare_cached("SELECT DISTINCT owner FROM unlogged")?;
        let mut owners: Vec<String> =
            statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        owners.retain(|owner| **owner == *self.owner || !self.owners.is_alive(owner));
        Ok(owners)
    }

    fn has_due(&self, reader: &Connection, owners: &[String]) -> Result<bool, JournalError> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {DUE})");
        let owners = serde_json::to_string(owners).unwrap_or_default();
        Ok(reader.prepare_cached(&sql)?.query_row([owners], |row| row.get(0))?)
    }

    /// Waits for the lock on the log files, which is held until the returned lock is dropped.
    pub(crate) fn lock(&self) -> io::Result<FileLock> {
        lock(&self.folder)
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

fn read_pending(
    reader: &Connection,
    owners: &[String],
) -> Result<Vec<UnloggedEntry>, JournalError> {
    let sql = format!(
        "SELECT number, owner, execution, session, line FROM {DUE} ORDER BY number LIMIT ?2"
    );
    let mut statement = reader.prepare_cached(&sql)?;
    let owners = serde_json::to_string(owners).unwrap_or_default();
    let rows = statement.query_map(rusqlite::params![owners, BATCH], |row| {
        Ok(UnloggedEntry {
            number: row.get(0)?,
            owner: row.get(1)?,
            execution: row.get(2)?,
            session: row.get(3)?,
            line: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the file's name, the prefix that identifies the line, and the line; `None` if the row is
/// gone.
fn render(
    reader: &Connection,
    entry: UnloggedEntry,
) -> Result<Option<(String, String, String)>, JournalError> {
    if let (Some(session), Some(line)) = (entry.session, entry.line) {
        return Ok(Some((session_file(&session), line.clone(), line)));
    }
    let execution = entry.execution.map(|seq| read::get_by_seq(reader, seq)).transpose()?;
    let Some(execution) = execution.flatten() else { return Ok(None) };
    let summary = &execution.summary;
    let name = match &summary.session {
        Some(session) => session_file(session.as_str()),
        None => day_file(&format_utc_day(summary.started)),
    };
    let prefix = log_line::prefix(summary.id.as_str());
    Ok(Some((name, prefix, log_line::render(&execution))))
}

pub(crate) fn session_file(session: &str) -> String {
    format!("session-{session}.jsonl")
}

pub(crate) fn day_file(day: &str) -> String {
    format!("executions-{day}.jsonl")
}

#[cfg(test)]
mod tests;
