//! The full-text index, in a separate database: updating it blocks no writer, and it can always be
//! rebuilt.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Result, TransactionBehavior, params};

use super::{error::is_corrupt, schema};
use crate::execution_row::truncate;

/// How many executions are indexed in one transaction.
const BATCH: u32 = 256;

/// Longer texts are truncated.
const TEXT_BYTES: usize = 256 << 10;

/// The schema version of the index. A change rebuilds the index.
const VERSION: u32 = 2;

/// A contentless index: it stores the words, but not the texts, and needs no text to delete a row.
/// The row id is the execution's end number.
const SCHEMA: &str = "CREATE VIRTUAL TABLE texts USING fts5(
        code, output, message, value, about,
        content = '', contentless_delete = 1, detail = full,
        tokenize = \"unicode61 remove_diacritics 2\");
    -- The end number of the last indexed execution.
    CREATE TABLE position (end_number INTEGER NOT NULL) STRICT;
    INSERT INTO position VALUES (0);";

#[derive(Debug)]
pub(crate) struct SearchIndex {
    path: PathBuf,
    conn: Option<Connection>,
}

impl SearchIndex {
    pub(crate) fn next_to(database: &Path) -> SearchIndex {
        SearchIndex { path: path(database), conn: None }
    }

    /// Indexes all ended executions. Rebuilds a corrupt index.
    pub(crate) fn catch_up(&mut self, reader: &Connection) -> Result<()> {
        match self.try_catch_up(reader) {
            Err(err) if is_corrupt(&err) => {
                let file = self.path.display();
                tracing::warn!(%err, %file, "the search index is corrupt; rebuilding it");
                self.conn = None;
                for ending in ["", "-wal", "-shm"] {
                    let _ = std::fs::remove_file(format!("{}{ending}", self.path.display()));
                }
                self.try_catch_up(reader)
            }
            done => done,
        }
    }

    /// Deletes executions from the index.
    pub(crate) fn remove(&mut self, end_numbers: &[i64]) -> Result<()> {
        let conn = self.open()?;
        let list = serde_json::to_string(end_numbers).unwrap_or_default();
        let sql = "DELETE FROM texts WHERE rowid IN (SELECT value FROM json_each(?1))";
        conn.execute(sql, [list])?;
        Ok(())
    }

    /// Returns the size of the index.
    pub(crate) fn bytes(&self) -> u64 {
        std::fs::symlink_metadata(&self.path).map_or(0, |stat| stat.len())
    }

    fn try_catch_up(&mut self, reader: &Connection) -> Result<()> {
        let conn = self.open()?;
        while index_batch(conn, reader)? == BATCH {}
        Ok(())
    }

    fn open(&mut self) -> Result<&mut Connection> {
        let conn = match self.conn.take() {
            Some(conn) => conn,
            None => open(&self.path)?,
        };
        Ok(self.conn.insert(conn))
    }
}

/// Returns the path of a database's index.
pub(crate) fn path(database: &Path) -> PathBuf {
    database.with_file_name("search.db")
}

fn open(path: &Path) -> Result<Connection> {
    schema::create_private(path).map_err(|err| {
        rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(14), Some(err.to_string()))
    })?;
    let mut conn = Connection::open(path)?;
    conn.busy_timeout(schema::BUSY_TIMEOUT)?;
    conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    conn.pragma_update(None, "synchronous", "normal")?;
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: u32 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found != VERSION {
        transaction.execute_batch("DROP TABLE IF EXISTS texts; DROP TABLE IF EXISTS position")?;
        transaction.execute_batch(SCHEMA)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(conn)
}

/// Encodes attributes of an execution as words of the index, so that one lookup matches both texts
/// and attributes.
pub(crate) fn attribute_words(
    language: Option<&str>,
    kind: Option<&str>,
    session: Option<&str>,
    principal: Option<&str>,
) -> Vec<String> {
    let word = |letter: char, text: Option<&str>| {
        let strip =
            |text: &str| -> String { text.chars().filter(char::is_ascii_alphanumeric).collect() };
        text.map(|text| format!("{letter}{}", strip(text)))
    };
    // In hexadecimal, because two principals may differ in punctuation only.
    let principal = principal
        .map(|text| text.bytes().fold("p".to_owned(), |word, byte| format!("{word}{byte:02x}")));
    let words = [word('l', language), word('k', kind), word('s', session), principal];
    words.into_iter().flatten().collect()
}

/// Indexes one batch in one transaction, from which another server can continue.
fn index_batch(conn: &mut Connection, reader: &Connection) -> Result<u32> {
    let last: i64 = conn.query_row("SELECT end_number FROM position", [], |row| row.get(0))?;
    let is_more = "SELECT 1 FROM executions WHERE end_number > ?1 LIMIT 1";
    let is_more = reader.prepare_cached(is_more)?.query_row([last], |_| Ok(())).optional()?;
    if is_more.is_none() {
        return Ok(0);
    }
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let last: i64 =
        transaction.query_row("SELECT end_number FROM position", [], |row| row.get(0))?;
    let mut ended = reader.prepare_cached(
        "SELECT end_number, language, kind, session, principal, code, output, message,
             value FROM executions INDEXED BY executions_seek WHERE end_number > ?1 ORDER BY end_number LIMIT ?2",
    )?;
    let mut rows = ended.query(params![last, BATCH])?;
    let (mut read, mut position) = (0, last);
    while let Some(row) = rows.next()? {
        position = row.get(0)?;
        let session: Option<String> = row.get(3)?;
        let (language, kind): (String, String) = (row.get(1)?, row.get(2)?);
        let principal: Option<String> = row.get(4)?;
        let about =
            attribute_words(Some(&language), Some(&kind), session.as_deref(), principal.as_deref());
        let text = |column: usize| -> Result<String> {
            let text = row.get_ref(column)?.as_str_or_null()?.unwrap_or_default();
            Ok(truncate(text, TEXT_BYTES))
        };
        transaction
            .prepare_cached(
                "INSERT OR REPLACE INTO texts (rowid, code, output, message, value, about)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![position, text(5)?, text(6)?, text(7)?, text(8)?, about.join(" ")])?;
        read += 1;
    }
    transaction.execute("UPDATE position SET end_number = ?1", [position])?;
    transaction.commit()?;
    Ok(read)
}
