//! The statements that write and read sessions.

use std::time::SystemTime;

use codexec_types::{Edge, Identity, Language, RequestOrigin, SessionId, from_unix_ms, unix_ms};
use rusqlite::{Connection, OptionalExtension, Result, Row, named_params, params};

use super::{
    owner,
    read::{in_scope, parse_json, parse_optional_word, parse_word},
    savepoint::run_atomically,
};
use crate::{
    ReadScope, SessionQuery,
    execution::SessionRecord,
    execution_row::json,
    record::PackageTarget,
    session_row::{PackageInstallRow, SERVER_RESTART, SessionEndRow, SessionStartRow},
};

pub(crate) fn insert(conn: &Connection, row: &SessionStartRow, owner: &str) -> Result<()> {
    run_atomically(conn, || {
        let mut statement = conn.prepare_cached(
            "INSERT INTO sessions (id, owner, principal, edge, language, name, pid,
                 working_dir, context, started_ms)
             VALUES (:id, :owner, :principal, :edge, :language, :name, :pid, :working_dir,
                 :context, :started_ms)",
        )?;
        statement.execute(named_params! {
            ":id": row.id.as_str(),
            ":owner": owner,
            ":principal": row.principal,
            ":edge": row.edge,
            ":language": row.language,
            ":name": row.name,
            ":pid": row.pid,
            ":working_dir": row.working_dir,
            ":context": row.context,
            ":started_ms": unix_ms(row.at),
        })?;
        queue_log_line(conn, owner, &row.id, &row.log_line())
    })
}

pub(crate) fn insert_package(
    conn: &Connection,
    row: &PackageInstallRow,
    owner: &str,
) -> Result<()> {
    match &row.target {
        PackageTarget::Session(session) => insert_package_for_session(conn, row, owner, session),
        PackageTarget::Everybody(language) => insert_shared_package(conn, row, *language),
    }
}

fn insert_shared_package(
    conn: &Connection,
    row: &PackageInstallRow,
    language: Language,
) -> Result<()> {
    let mut statement = conn.prepare_cached(
        "INSERT INTO shared_packages (language, name, version, is_ok, principal, edge, at_ms)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let (language, at_ms) = (language.name(), unix_ms(row.at));
    let PackageInstallRow { name, version, is_ok, principal, edge, .. } = row;
    statement.execute(params![language, name, version, is_ok, principal, edge, at_ms])?;
    Ok(())
}

fn insert_package_for_session(
    conn: &Connection,
    row: &PackageInstallRow,
    owner: &str,
    session: &SessionId,
) -> Result<()> {
    run_atomically(conn, || {
        let mut statement = conn.prepare_cached(
            "INSERT INTO session_packages (session, name, version, is_ok, principal, edge, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let (id, at_ms) = (session.as_str(), unix_ms(row.at));
        let PackageInstallRow { name, version, is_ok, principal, edge, .. } = row;
        statement.execute(params![id, name, version, is_ok, principal, edge, at_ms])?;
        queue_log_line(conn, owner, session, &row.log_line(session))
    })
}

/// Ends a session. Returns false, and changes nothing, if it has already ended.
pub(crate) fn end(conn: &Connection, row: &SessionEndRow) -> Result<bool> {
    let SessionEndRow { id, reason, at, executions } = row;
    let mut find = conn.prepare_cached(
        "SELECT owner, started_ms FROM sessions WHERE id = ?1 AND ended_ms IS NULL",
    )?;
    let found = find.query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((owner, started_ms)): Option<(String, i64)> = found else { return Ok(false) };
    run_atomically(conn, || {
        let mut statement = conn.prepare_cached(
            "UPDATE sessions SET ended_ms = ?2, reason = ?3, executions = ?4
             WHERE id = ?1 AND ended_ms IS NULL",
        )?;
        let changed = statement.execute(params![id.as_str(), unix_ms(*at), reason, executions])?;
        if changed == 1 {
            queue_log_line(conn, &owner, id, &row.log_line(started_ms))?;
        }
        Ok(changed == 1)
    })
}

/// Ends the sessions of dead servers. Returns how many.
pub(crate) fn end_orphans(
    conn: &Connection,
    owners: &owner::OwnerFolder,
    now: SystemTime,
) -> Result<u64> {
    let mut open = conn.prepare_cached("SELECT id, owner FROM sessions WHERE ended_ms IS NULL")?;
    let open: Vec<(String, String)> =
        open.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_>>()?;
    let mut ended = 0;
    for (id, _) in open.iter().filter(|(_, owner)| !owners.is_alive(owner)) {
        let count = "SELECT count(*) FROM executions WHERE session = ?1";
        let executions = conn.query_row(count, [id], |row| row.get(0))?;
        if let Some(id) = SessionId::parse(id) {
            let reason = SERVER_RESTART.to_owned();
            let row = SessionEndRow { id, reason, at: now, executions };
            ended += u64::from(end(conn, &row)?);
        }
    }
    Ok(ended)
}

/// Lists sessions, newest first, including ended ones.
pub(crate) fn list(
    conn: &Connection,
    query: &SessionQuery,
    scope: &ReadScope,
    own: &str,
) -> Result<Vec<SessionRecord>> {
    let ids = query.only.as_ref().map(|ids| {
        let ids: Vec<&str> = ids.iter().map(SessionId::as_str).collect();
        json(&ids)
    });
    let mut statement = conn.prepare_cached(concat!(
        "SELECT * FROM sessions
         WHERE (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids))) AND ",
        in_scope!(),
        " ORDER BY seq DESC LIMIT :limit",
    ))?;
    let values = named_params! {
        ":ids": ids,
        ":principal": scope.principal(),
        ":owner": scope.owner(own),
        ":limit": query.list_limit(),
    };
    statement.query_map(values, read_session)?.collect()
}

fn read_session(row: &Row<'_>) -> Result<SessionRecord> {
    let ended: Option<i64> = row.get("ended_ms")?;
    Ok(SessionRecord {
        id: parse_word(row, "id", SessionId::parse)?,
        identity: parse_word(row, "principal", Identity::parse)?,
        edge: parse_optional_word(row, "edge", Edge::parse)?,
        language: row.get("language")?,
        name: row.get("name")?,
        pid: row.get("pid")?,
        working_dir: row.get("working_dir")?,
        context: parse_json::<RequestOrigin>(row, "context")?,
        started: from_unix_ms(row.get("started_ms")?),
        ended: ended.map(from_unix_ms),
        reason: row.get("reason")?,
        executions: row.get("executions")?,
    })
}

fn queue_log_line(
    conn: &Connection,
    owner: &str,
    session: &SessionId,
    line: &serde_json::Value,
) -> Result<()> {
    let mut statement =
        conn.prepare_cached("INSERT INTO unlogged (owner, session, line) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![owner, session.as_str(), line.to_string()])?;
    Ok(())
}
