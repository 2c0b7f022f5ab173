//! The table `unlogged`: entries that are not in the log files yet.
//!
//! An entry is in the table from its beginning until it has ended and its line is written. A server
//! that dies in between leaves the entry there, and the server that takes it over checks the file
//! first. So every entry is in its file exactly once.

use std::{collections::BTreeSet, io, sync::Arc};

use rusqlite::Connection;

use super::{database::Database, owner, read};
use crate::journal::{FileLines, Journal, LogLine};

/// How many entries are written at once.
const BATCH: u32 = 256;

/// About how many bytes are written at once.
const BATCH_BYTES: usize = 4 << 20;

/// The entries of these owners, except for running executions.
const DUE: &str = "unlogged WHERE owner IN (SELECT value FROM json_each(?1))
    AND NOT EXISTS (SELECT 1 FROM executions WHERE seq = execution AND status = 'running')";

#[derive(Debug)]
pub(crate) struct UnloggedEntries {
    journal: Journal,
    owner: Arc<str>,
    owners: owner::OwnerFolder,
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

impl UnloggedEntries {
    pub(crate) fn new(
        journal: Journal,
        owner: Arc<str>,
        owners: owner::OwnerFolder,
    ) -> UnloggedEntries {
        UnloggedEntries { journal, owner, owners, uncertain: BTreeSet::new() }
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
            let _lock = self.journal.lock()?;
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
            let Some(line) = render(reader, entry)? else { continue };
            bytes += line.text.len();
            let (name, line) = (line.file, (line.prefix, line.text, may_exist));
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
            self.journal.append(file)?;
        }
        let mut open = database.lock();
        let list = serde_json::to_string(numbers).unwrap_or_default();
        let sql = "DELETE FROM unlogged WHERE number IN (SELECT value FROM json_each(?1))";
        open.conn.prepare_cached(sql)?.execute([list])?;
        open.checkpointer.count_commit();
        self.uncertain.retain(|number| !numbers.contains(number));
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

/// Returns the line of an entry; `None` if the row is gone.
fn render(reader: &Connection, entry: UnloggedEntry) -> Result<Option<LogLine>, JournalError> {
    if let (Some(session), Some(line)) = (entry.session, entry.line) {
        return Ok(Some(LogLine::of_session(&session, line)));
    }
    let execution = entry.execution.map(|seq| read::get_by_seq(reader, seq)).transpose()?;
    Ok(execution.flatten().as_ref().map(LogLine::of_execution))
}
