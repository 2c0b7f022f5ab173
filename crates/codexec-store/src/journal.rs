//! The log files: `executions-<day>.jsonl` and `session-<id>.jsonl`, a line for each entry.
//!
//! The rows are the truth, and the files follow. What is not in them yet stands in the table
//! `unlogged` from its beginning on, and leaves it after it ended and its line was written.
//! Whoever dies in between leaves it there; whoever finds it looks into the file first. So every
//! entry is in its file exactly once.

mod file;
mod prune;

pub(crate) use prune::{is_regular, without};

use std::{
    collections::{BTreeSet, HashSet},
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use codexec_types::format_utc_day;
use rusqlite::Connection;

use crate::{Durability, database::Database, entry, owner, read};

/// How many entries are written at once.
const GROUP: u32 = 256;

/// And about how much of them.
const GROUP_BYTES: usize = 4 << 20;

/// The entries of these owners, but not those of executions that still run.
const DUE: &str = "unlogged WHERE owner IN (SELECT value FROM json_each(?1))
    AND NOT EXISTS (SELECT 1 FROM executions WHERE seq = execution AND status = 'running')";

#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    owner: Arc<str>,
    owners: owner::Folder,
    durability: Durability,
    /// Of these of ours a line may be in its file although they stand in `unlogged`.
    unsure: BTreeSet<i64>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Database(#[from] rusqlite::Error),
}

/// An entry that is not in its file yet.
struct Pending {
    number: i64,
    owner: String,
    execution: Option<i64>,
    session: Option<String>,
    line: Option<String>,
}

/// The lines that one file is to get.
struct Lines {
    name: String,
    /// Each with how it is known again, and whether it may be there already.
    lines: Vec<(String, String, bool)>,
}

impl Journal {
    pub(crate) fn new(
        database: &Path,
        owner: Arc<str>,
        owners: owner::Folder,
        durability: Durability,
    ) -> Journal {
        let folder = database.with_file_name("logs");
        Journal { folder, owner, owners, durability, unsure: BTreeSet::new() }
    }

    /// Writes all that is ours to write. With `take_over`, also what servers that died left.
    pub(crate) fn write(
        &mut self,
        reader: &Connection,
        database: &Database,
        take_over: bool,
    ) -> Result<(), JournalError> {
        loop {
            let owners = if take_over { self.whose(reader)? } else { vec![self.owner.to_string()] };
            if !self.is_any(reader, &owners)? {
                return Ok(());
            }
            let _alone = self.lock()?;
            // Read again: until now somebody else may have written it.
            let (numbers, files) = self.group(reader, &owners)?;
            if numbers.is_empty() {
                return Ok(());
            }
            self.write_group(database, &numbers, &files)?;
        }
    }

    /// What is to be written next: the numbers of entries, and their lines.
    fn group(
        &self,
        reader: &Connection,
        owners: &[String],
    ) -> Result<(Vec<i64>, Vec<Lines>), JournalError> {
        // One for all that is read: its start and end cost as much as a row.
        let _reading = reader.unchecked_transaction()?;
        let mut files: Vec<Lines> = Vec::new();
        let (mut numbers, mut bytes) = (Vec::new(), 0);
        for pending in pending(reader, owners)? {
            if bytes > GROUP_BYTES {
                break;
            }
            numbers.push(pending.number);
            let may_be_there =
                self.unsure.contains(&pending.number) || *pending.owner != *self.owner;
            let Some((name, known_by, line)) = rendered(reader, pending)? else { continue };
            bytes += line.len();
            let line = (known_by, line, may_be_there);
            match files.iter_mut().find(|file| file.name == name) {
                Some(file) => file.lines.push(line),
                None => files.push(Lines { name, lines: vec![line] }),
            }
        }
        Ok((numbers, files))
    }

    fn write_group(
        &mut self,
        database: &Database,
        numbers: &[i64],
        files: &[Lines],
    ) -> Result<(), JournalError> {
        self.unsure.extend(numbers);
        for file in files {
            self.append(file)?;
        }
        let mut open = database.lock();
        let list = serde_json::to_string(numbers).unwrap_or_default();
        let sql = "DELETE FROM unlogged WHERE number IN (SELECT value FROM json_each(?1))";
        open.conn.prepare_cached(sql)?.execute([list])?;
        open.checkpointer.committed();
        self.unsure.retain(|number| !numbers.contains(number));
        Ok(())
    }

    fn append(&self, file: &Lines) -> io::Result<()> {
        let path = self.folder.join(&file.name);
        let mut log = file::Log::open(&path)?;
        let doubtful: HashSet<&str> = file
            .lines
            .iter()
            .filter(|(_, _, may_be_there)| *may_be_there)
            .map(|(known_by, _, _)| known_by.as_str())
            .collect();
        let there = if doubtful.is_empty() { HashSet::new() } else { log.those_of(&doubtful)? };
        let mut text = String::new();
        for (_, line, _) in file.lines.iter().filter(|(known_by, _, _)| !there.contains(known_by)) {
            text.push_str(line);
            text.push('\n');
        }
        log.append(text.as_bytes())?;
        if self.durability == Durability::Power {
            log.sync(&self.folder)?;
        }
        Ok(())
    }

    /// Us, and whoever has entries here and died.
    fn whose(&self, reader: &Connection) -> Result<Vec<String>, JournalError> {
        let mut statement = reader.prepare_cached("SELECT DISTINCT owner FROM unlogged")?;
        let mut owners: Vec<String> =
            statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        owners.retain(|owner| **owner == *self.owner || !self.owners.is_alive(owner));
        Ok(owners)
    }

    fn is_any(&self, reader: &Connection, owners: &[String]) -> Result<bool, JournalError> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM {DUE})");
        let owners = serde_json::to_string(owners).unwrap_or_default();
        Ok(reader.prepare_cached(&sql)?.query_row([owners], |row| row.get(0))?)
    }

    /// Waits until nobody else writes log files; that ends when the file is dropped.
    pub(crate) fn lock(&self) -> io::Result<File> {
        lock(&self.folder)
    }
}

/// Makes the folder if need be, and keeps everybody else out of it.
pub(crate) fn lock(folder: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let about = std::fs::symlink_metadata(folder)?;
    if !about.is_dir() {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "the folder of logs is a link"));
    }
    if about.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(folder, PermissionsExt::from_mode(0o700))?;
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600);
    let file = file.custom_flags(file::NO_LINK).open(folder.join(".lock"))?;
    file.lock()?;
    Ok(file)
}

fn pending(reader: &Connection, owners: &[String]) -> Result<Vec<Pending>, JournalError> {
    let sql = format!(
        "SELECT number, owner, execution, session, line FROM {DUE} ORDER BY number LIMIT ?2"
    );
    let mut statement = reader.prepare_cached(&sql)?;
    let owners = serde_json::to_string(owners).unwrap_or_default();
    let rows = statement.query_map(rusqlite::params![owners, GROUP], |row| {
        Ok(Pending {
            number: row.get(0)?,
            owner: row.get(1)?,
            execution: row.get(2)?,
            session: row.get(3)?,
            line: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The file's name, how the line is known again, and the line. `None` where its row is gone.
fn rendered(
    reader: &Connection,
    pending: Pending,
) -> Result<Option<(String, String, String)>, JournalError> {
    if let (Some(session), Some(line)) = (pending.session, pending.line) {
        return Ok(Some((session_file(&session), line.clone(), line)));
    }
    let execution = pending.execution.map(|seq| read::by_seq(reader, seq)).transpose()?;
    let Some(execution) = execution.flatten() else { return Ok(None) };
    let summary = &execution.summary;
    let name = match &summary.session {
        Some(session) => session_file(session.as_str()),
        None => day_file(&format_utc_day(summary.started)),
    };
    let known_by = entry::beginning(summary.id.as_str());
    Ok(Some((name, known_by, entry::line(&execution))))
}

pub(crate) fn session_file(session: &str) -> String {
    format!("session-{session}.jsonl")
}

pub(crate) fn day_file(day: &str) -> String {
    format!("executions-{day}.jsonl")
}

#[cfg(test)]
mod tests;
