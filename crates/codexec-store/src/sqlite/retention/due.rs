//! The statements that find and remove what is due.

use std::time::{Duration, SystemTime};

use codexec_types::{from_unix_ms, unix_ms};
use rusqlite::{Connection, OptionalExtension, Result, Row, named_params, params};

use crate::{
    Retention, journal,
    retention::{DAY, files::OldLog},
};

/// An execution that is to be removed.
pub(super) struct DueExecution {
    pub(super) seq: i64,
    pub(super) end_number: i64,
    pub(super) id: String,
    session: Option<String>,
    started: SystemTime,
}

impl DueExecution {
    /// Returns the name of the log file that has its line.
    pub(super) fn log_file(&self) -> String {
        journal::execution_file(self.session.as_deref(), self.started)
    }
}

fn read_due(row: &Row<'_>) -> Result<DueExecution> {
    let started = from_unix_ms(row.get("started_ms")?);
    Ok(DueExecution {
        seq: row.get("seq")?,
        end_number: row.get("end_number")?,
        id: row.get("id")?,
        session: row.get("session")?,
        started,
    })
}

pub(super) fn newest_start(conn: &Connection) -> Result<Option<SystemTime>> {
    let sql = "SELECT max(started_ms) FROM executions INDEXED BY executions_seek
        WHERE end_number IS NOT NULL";
    let newest: Option<i64> = conn.query_row(sql, [], |row| row.get(0))?;
    Ok(newest.map(from_unix_ms))
}

/// Lists executions beyond their age limit, oldest first.
pub(super) fn list_expired(
    conn: &Connection,
    retention: &Retention,
    now: SystemTime,
    limit: usize,
) -> Result<Vec<DueExecution>> {
    let mut statement = conn.prepare(
        "SELECT seq, end_number, id, session, started_ms FROM executions WHERE seq IN (
             SELECT seq FROM executions INDEXED BY executions_seek
             WHERE end_number IS NOT NULL AND started_ms < max(:success, :failure, :session)
               AND CASE
                 WHEN session IS NOT NULL THEN started_ms < :session AND session NOT IN (
                     SELECT id FROM sessions WHERE ended_ms IS NULL OR ended_ms >= :session)
                 WHEN kind = 'success' THEN started_ms < :success
                 ELSE started_ms < :failure END
             ORDER BY seq LIMIT :limit) ORDER BY seq",
    )?;
    let rows = statement.query_map(
        named_params! {
            ":success": before(now, retention.success),
            ":failure": before(now, retention.failure),
            ":session": before(now, retention.session),
            ":limit": i64::try_from(limit).unwrap_or(i64::MAX),
        },
        read_due,
    )?;
    rows.collect()
}

/// Lists the oldest ended executions, whatever their age.
pub(super) fn list_oldest(conn: &Connection, limit: usize) -> Result<Vec<DueExecution>> {
    let mut statement = conn.prepare(
        "SELECT seq, end_number, id, session, started_ms FROM executions WHERE end_number IS NOT NULL
         ORDER BY seq LIMIT ?1",
    )?;
    let rows = statement.query_map([i64::try_from(limit).unwrap_or(i64::MAX)], read_due)?;
    rows.collect()
}

pub(super) fn list_expired_sessions(
    conn: &Connection,
    retention: &Retention,
    now: SystemTime,
) -> Result<Vec<String>> {
    let mut statement =
        conn.prepare("SELECT id FROM sessions WHERE ended_ms < ?1 ORDER BY seq LIMIT 10000")?;
    let rows = statement.query_map([before(now, retention.session)], |row| row.get(0))?;
    rows.collect()
}

pub(super) fn remove(conn: &Connection, seqs: &[i64]) -> Result<usize> {
    // End numbers are never reused, because they are the search index's position.
    conn.execute(
        "UPDATE removed SET end_number = max(end_number, ifnull(
             (SELECT max(end_number) FROM executions WHERE end_number IS NOT NULL), 0))",
        [],
    )?;
    let list = serde_json::to_string(seqs).unwrap_or_default();
    conn.execute(
        "DELETE FROM calls WHERE execution IN (SELECT value FROM json_each(?1))",
        [&list],
    )?;
    conn.execute("DELETE FROM executions WHERE seq IN (SELECT value FROM json_each(?1))", [&list])
}

/// Removes a session. Returns false, and keeps it, if it has executions left.
pub(super) fn remove_session(conn: &Connection, session: &str) -> Result<bool> {
    let removed = conn.execute(
        "DELETE FROM sessions WHERE id = ?1
         AND NOT EXISTS (SELECT 1 FROM executions WHERE session = ?1)",
        [session],
    )?;
    if removed > 0 {
        conn.execute("DELETE FROM session_packages WHERE session = ?1", [session])?;
    }
    Ok(removed > 0)
}

pub(super) fn has_execution(conn: &Connection, id: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM executions WHERE id = ?1";
    Ok(conn.prepare_cached(sql)?.query_row([id], |_| Ok(())).optional()?.is_some())
}

/// Returns true if any row has, or may have, a line in the file.
pub(super) fn has_rows_in(conn: &Connection, file: &OldLog) -> Result<bool> {
    let row = match &file.session {
        Some(session) => {
            let sql = "SELECT 1 FROM sessions WHERE id = ?1";
            conn.prepare_cached(sql)?.query_row([session], |_| Ok(())).optional()?
        }
        None => {
            let sql = "SELECT 1 FROM executions INDEXED BY executions_seek
                WHERE end_number IS NOT NULL AND started_ms >= ?1 AND started_ms < ?2 LIMIT 1";
            let (from, to) = (unix_ms(file.day), unix_ms(file.day + DAY));
            conn.prepare_cached(sql)?.query_row(params![from, to], |_| Ok(())).optional()?
        }
    };
    Ok(row.is_some())
}

/// Returns the size of the database without its free pages.
pub(super) fn database_bytes(conn: &Connection) -> Result<u64> {
    let pragma = |name: &str| -> Result<i64> {
        conn.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
    };
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    Ok(pages.saturating_mul(pragma("page_size")?).unsigned_abs())
}

fn before(now: SystemTime, age: Duration) -> i64 {
    now.checked_sub(age).map_or(i64::MIN, unix_ms)
}
