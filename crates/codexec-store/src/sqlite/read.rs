//! The statements that read executions.

use std::time::{Duration, SystemTime};

use codexec_types::{
    Edge, ExecutionId, FileChanges, GuestOutput, Identity, RequestOrigin, SessionId, from_unix_ms,
    unix_ms,
};
use rusqlite::{
    Connection, OptionalExtension, Result, Row, named_params, params,
    types::{FromSqlError, Type},
};
use serde::de::DeserializeOwned;

use super::{calls, owner, write::next_end};
use crate::{
    ReadScope,
    execution::{
        CoarseStatus, ExecutionCounts, ExecutionRecord, ExecutionStatus, ExecutionSummary,
        ExecutionTotals,
    },
};

/// The columns of a [`ExecutionSummary`].
pub(crate) const SUMMARY: &str = "id, language, status, kind, error_code, message, started_ms, \
    ended_ms, duration_us, tool_calls, posture, peak_memory_bytes, cpu_us, limits_met, exit_code, \
    images, session, script, script_version";

/// The condition for running executions. They are all in the small table `unlogged`, so no other
/// row is read.
pub(crate) const IS_RUNNING: &str =
    "seq IN (SELECT execution FROM unlogged) AND status = 'running'";

/// The condition of a [`ReadScope`](crate::ReadScope) for rows with a principal and an owner.
macro_rules! in_scope {
    () => {
        "(:principal IS NULL OR principal = :principal) AND (:owner IS NULL OR owner = :owner)"
    };
}
pub(crate) use in_scope;

/// Reads an execution, if it is in the scope.
pub(crate) fn get(
    conn: &Connection,
    id: &ExecutionId,
    scope: &ReadScope,
    own: &str,
) -> Result<Option<ExecutionRecord>> {
    let seq = find(conn, id, scope, own)?;
    seq.map_or(Ok(None), |seq| get_by_seq(conn, seq))
}

/// Finds the row of an execution, if it is in the scope.
pub(crate) fn find(
    conn: &Connection,
    id: &ExecutionId,
    scope: &ReadScope,
    own: &str,
) -> Result<Option<i64>> {
    let sql = concat!("SELECT seq FROM executions WHERE id = :id AND ", in_scope!());
    let mut statement = conn.prepare_cached(sql)?;
    let values = named_params! {
        ":id": id.as_str(),
        ":principal": scope.principal(),
        ":owner": scope.owner(own),
    };
    statement.query_row(values, |row| row.get(0)).optional()
}

pub(crate) fn get_by_seq(conn: &Connection, seq: i64) -> Result<Option<ExecutionRecord>> {
    let mut statement = conn.prepare_cached("SELECT * FROM executions WHERE seq = ?1")?;
    let row = statement.query_row([seq], read_execution).optional()?;
    let Some(mut execution) = row else { return Ok(None) };
    execution.calls = calls::list(conn, seq)?;
    if let Some(session) = &execution.summary.session {
        execution.packages = list_packages(conn, session, execution.summary.started)?;
    }
    Ok(Some(execution))
}

/// Lists the newest executions first.
pub(crate) fn list_recent(
    conn: &Connection,
    limit: u32,
    scope: &ReadScope,
    own: &str,
) -> Result<Vec<ExecutionSummary>> {
    let sql = format!(
        "SELECT {SUMMARY} FROM executions WHERE {} ORDER BY seq DESC LIMIT :limit",
        in_scope!()
    );
    let values = named_params! {
        ":limit": limit,
        ":principal": scope.principal(),
        ":owner": scope.owner(own),
    };
    conn.prepare_cached(&sql)?.query_map(values, read_summary)?.collect()
}

/// Counts executions, reading few rows and a small index.
pub(crate) fn count(conn: &Connection, scope: &ReadScope, own: &str) -> Result<ExecutionCounts> {
    let is_here = match scope {
        // No index has the owner.
        ReadScope::RanHereFor(_) => "owner = :owner",
        ReadScope::Everyone | ReadScope::Of(_) => ":owner IS NULL",
    };
    let in_scope = format!("(:principal IS NULL OR principal = :principal) AND {is_here}");
    let sql = format!(
        "SELECT (SELECT count(*) FROM executions WHERE {IS_RUNNING} AND {in_scope}),
             (SELECT count(*) FROM executions INDEXED BY executions_seek
              WHERE end_number IS NOT NULL AND {in_scope})"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let values = named_params! {":principal": scope.principal(), ":owner": scope.owner(own)};
    statement.query_row(values, |row| {
        let (running, ended): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (running, ended) = (running.unsigned_abs(), ended.unsigned_abs());
        Ok(ExecutionCounts { running, total: running + ended })
    })
}

/// Sums up tool calls and what executions showed. Lengths are read without the texts.
pub(crate) fn count_totals(
    conn: &Connection,
    scope: &ReadScope,
    own: &str,
) -> Result<ExecutionTotals> {
    let sql = concat!(
        "SELECT ifnull(sum(shown), 0), ifnull(sum(answered), 0), ifnull(sum(received), 0),
             ifnull(sum(max(received - shown, 0)), 0)
         FROM (SELECT ifnull(octet_length(output), 0) + ifnull(octet_length(value), 0) AS shown,
                 (SELECT count(result_bytes) FROM calls WHERE execution = seq) AS answered,
                 ifnull((SELECT sum(result_bytes) FROM calls WHERE execution = seq), 0) AS received
             FROM executions WHERE ",
        in_scope!(),
        ")"
    );
    let values = named_params! {":principal": scope.principal(), ":owner": scope.owner(own)};
    conn.prepare_cached(sql)?.query_row(values, |row| {
        let number = |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, i64>(at)?.unsigned_abs());
        Ok(ExecutionTotals {
            shown_bytes: number(0)?,
            calls: number(1)?,
            result_bytes: number(2)?,
            saved_bytes: number(3)?,
        })
    })
}

/// Returns the largest stored end number.
pub(crate) fn last_end(conn: &Connection) -> Result<i64> {
    let sql = "SELECT ifnull(max(end_number), 0) FROM executions WHERE end_number IS NOT NULL";
    conn.query_row(sql, [], |row| row.get(0))
}

/// Ends the running executions of dead servers. Returns how many.
pub(crate) fn interrupt_orphans(
    conn: &Connection,
    owners: &owner::OwnerFolder,
    now: SystemTime,
) -> Result<u64> {
    let sql = format!("SELECT seq, owner FROM executions WHERE {IS_RUNNING}");
    let mut running = conn.prepare_cached(&sql)?;
    let running: Vec<(i64, String)> =
        running.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_>>()?;
    let mut end = conn.prepare_cached(concat!(
        "UPDATE executions SET status = 'failed', error_code = 'interrupted', ended_ms = ?2,
             end_number = ",
        next_end!(),
        " WHERE seq = ?1 AND status = 'running'",
    ))?;
    let mut changed = 0;
    for (seq, _) in running.iter().filter(|(_, owner)| !owners.is_alive(owner)) {
        changed += end.execute(params![seq, unix_ms(now)])?;
    }
    Ok(changed as u64)
}

fn list_packages(
    conn: &Connection,
    session: &SessionId,
    before: SystemTime,
) -> Result<Vec<String>> {
    let mut statement = conn.prepare_cached(
        "SELECT DISTINCT name FROM session_packages
         WHERE session = ?1 AND is_ok AND at_ms <= ?2 ORDER BY rowid LIMIT 1000",
    )?;
    let rows = statement.query_map(params![session.as_str(), unix_ms(before)], |row| row.get(0))?;
    rows.collect()
}

fn read_execution(row: &Row<'_>) -> Result<ExecutionRecord> {
    let output: Option<String> = row.get("output")?;
    let errors: Vec<(usize, usize)> = parse_json(row, "errors")?;
    Ok(ExecutionRecord {
        summary: read_summary(row)?,
        code: row.get("code")?,
        input: row.get("input")?,
        args: parse_json(row, "args")?,
        written: output.map(|text| GuestOutput::new(text, errors)),
        value: row.get("value")?,
        wall: Duration::from_millis(row.get::<_, i64>("wall_ms")?.unsigned_abs()),
        changes: parse_json::<FileChanges>(row, "changes")?,
        working_dir: row.get("working_dir")?,
        context: parse_json::<RequestOrigin>(row, "context")?,
        identity: parse_optional_word(row, "principal", Identity::parse)?,
        edge: parse_optional_word(row, "edge", Edge::parse)?,
        allowed_tools: parse_json(row, "allowed_tools")?,
        grants: split_words(row, "grants")?,
        calls: Vec::new(),
        packages: Vec::new(),
    })
}

/// Parses a JSON column; NULL gives the default.
pub(crate) fn parse_json<T: DeserializeOwned + Default>(row: &Row<'_>, column: &str) -> Result<T> {
    let text: Option<String> = row.get(column)?;
    let parsed = text.map_or_else(|| Ok(T::default()), |text| serde_json::from_str(&text));
    parsed.map_err(|err| {
        let at = row.as_ref().column_index(column).unwrap_or_default();
        rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(err))
    })
}

pub(crate) fn read_summary(row: &Row<'_>) -> Result<ExecutionSummary> {
    let ended: Option<i64> = row.get("ended_ms")?;
    let peak: Option<i64> = row.get("peak_memory_bytes")?;
    let script: Option<String> = row.get("script")?;
    let version: Option<u32> = row.get("script_version")?;
    Ok(ExecutionSummary {
        id: parse_word(row, "id", ExecutionId::parse)?,
        language: row.get("language")?,
        status: parse_word(row, "status", ExecutionStatus::parse)?,
        kind: parse_word(row, "kind", CoarseStatus::parse)?,
        error_code: row.get("error_code")?,
        message: row.get("message")?,
        started: from_unix_ms(row.get("started_ms")?),
        ended: ended.map(from_unix_ms),
        duration: read_micros(row, "duration_us")?,
        tool_calls: row.get("tool_calls")?,
        posture: row.get("posture")?,
        peak_memory_bytes: peak.map(i64::unsigned_abs),
        cpu: read_micros(row, "cpu_us")?,
        limits_met: split_words(row, "limits_met")?,
        exit_code: row.get("exit_code")?,
        images: row.get("images")?,
        session: parse_optional_word(row, "session", SessionId::parse)?,
        script: script.map(|name| (name, version.unwrap_or_default())),
    })
}

/// Splits a column of comma-separated words; NULL gives none.
fn split_words(row: &Row<'_>, column: &str) -> Result<Vec<String>> {
    let text: Option<String> = row.get(column)?;
    Ok(text.iter().flat_map(|text| text.split(',').map(str::to_owned)).collect())
}

pub(crate) fn read_micros(row: &Row<'_>, column: &str) -> Result<Option<Duration>> {
    let micros: Option<i64> = row.get(column)?;
    Ok(micros.map(|micros| Duration::from_micros(micros.unsigned_abs())))
}

pub(crate) fn parse_word<T>(
    row: &Row<'_>,
    column: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<T> {
    let word = parse_optional_word(row, column, parse)?;
    word.ok_or_else(|| unknown(row, column, "NULL"))
}

pub(crate) fn parse_optional_word<T>(
    row: &Row<'_>,
    column: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    let Some(text) = text else { return Ok(None) };
    parse(&text).map(Some).ok_or_else(|| unknown(row, column, &text))
}

fn unknown(row: &Row<'_>, column: &str, text: &str) -> rusqlite::Error {
    let at = row.as_ref().column_index(column).unwrap_or_default();
    let unknown = FromSqlError::Other(format!("unknown {column} {text:?}").into());
    rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(unknown))
}
