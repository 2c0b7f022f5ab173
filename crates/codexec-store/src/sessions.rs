//! The rows of sessions, and the lines of their log files.

use std::time::SystemTime;

use codexec_types::{RequestOrigin, SessionId, format_rfc3339, from_unix_ms, unix_ms};
use rusqlite::{Connection, OptionalExtension, Result, Row, named_params, params};
use serde_json::json;

use crate::{
    execution::SessionRecord,
    owner,
    read::{parse_json, parse_word},
    record::SessionStart,
    savepoint::run_atomically,
    write::{context_json, truncate},
};

const NAME_BYTES: usize = 1 << 10;

/// The reason for the end of a session whose server died.
pub(crate) const SERVER_RESTART: &str = "server_restart";

/// The row of a new session; an owned [`SessionStart`].
pub(crate) struct SessionStartRow {
    id: SessionId,
    principal: String,
    language: &'static str,
    name: Option<String>,
    pid: Option<u32>,
    working_dir: Option<String>,
    context: Option<String>,
    agent_id: Option<String>,
    at: SystemTime,
}

pub(crate) struct PackageInstall {
    pub(crate) session: SessionId,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) is_ok: bool,
    pub(crate) at: SystemTime,
}

impl SessionStartRow {
    pub(crate) fn new(start: &SessionStart<'_>) -> SessionStartRow {
        SessionStartRow {
            id: start.id.clone(),
            principal: start.principal.as_str().to_owned(),
            language: start.language.name(),
            name: start.name.map(|name| truncate(name, NAME_BYTES)),
            pid: start.pid,
            working_dir: start.working_dir.map(|dir| dir.display().to_string()),
            context: context_json(start.context),
            agent_id: start.context.agent_id.as_ref().map(|id| truncate(id, NAME_BYTES)),
            at: start.at,
        }
    }

    pub(crate) fn insert(&self, conn: &Connection, owner: &str) -> Result<()> {
        let line = json!({
            "type": "session_start",
            "session_id": self.id.as_str(),
            "language": self.language,
            "name": self.name,
            "pid": self.pid,
            "agent_id": self.agent_id,
            "started_at": format_rfc3339(self.at),
            "working_dir": self.working_dir,
        });
        run_atomically(conn, || {
            let mut statement = conn.prepare_cached(
                "INSERT INTO sessions (id, owner, principal, language, name, pid, working_dir,
                     context, started_ms)
                 VALUES (:id, :owner, :principal, :language, :name, :pid, :working_dir, :context,
                     :started_ms)",
            )?;
            statement.execute(named_params! {
                ":id": self.id.as_str(),
                ":owner": owner,
                ":principal": self.principal,
                ":language": self.language,
                ":name": self.name,
                ":pid": self.pid,
                ":working_dir": self.working_dir,
                ":context": self.context,
                ":started_ms": unix_ms(self.at),
            })?;
            queue_log_line(conn, owner, &self.id, &line)
        })
    }
}

impl PackageInstall {
    pub(crate) fn insert(&self, conn: &Connection, owner: &str) -> Result<()> {
        let line = json!({
            "type": "package_install",
            "session_id": self.session.as_str(),
            "package": self.name,
            "version": self.version,
            "success": self.is_ok,
            "at": format_rfc3339(self.at),
        });
        run_atomically(conn, || {
            let mut statement = conn.prepare_cached(
                "INSERT INTO session_packages (session, name, version, is_ok, at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            let at_ms = unix_ms(self.at);
            let row = params![self.session.as_str(), self.name, self.version, self.is_ok, at_ms];
            statement.execute(row)?;
            queue_log_line(conn, owner, &self.session, &line)
        })
    }
}

/// Ends a session. Returns false, and changes nothing, if it has already ended.
pub(crate) fn end(
    conn: &Connection,
    id: &SessionId,
    reason: &str,
    at: SystemTime,
    executions: u32,
) -> Result<bool> {
    let mut find = conn.prepare_cached(
        "SELECT owner, started_ms FROM sessions WHERE id = ?1 AND ended_ms IS NULL",
    )?;
    let found = find.query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((owner, started_ms)): Option<(String, i64)> = found else { return Ok(false) };
    let line = json!({
        "type": "session_end",
        "session_id": id.as_str(),
        "reason": reason,
        "total_duration_ms": unix_ms(at).saturating_sub(started_ms).max(0),
        "executions_count": executions,
        "at": format_rfc3339(at),
    });
    run_atomically(conn, || {
        let mut statement = conn.prepare_cached(
            "UPDATE sessions SET ended_ms = ?2, reason = ?3, executions = ?4
             WHERE id = ?1 AND ended_ms IS NULL",
        )?;
        let changed = statement.execute(params![id.as_str(), unix_ms(at), reason, executions])?;
        if changed == 1 {
            queue_log_line(conn, &owner, id, &line)?;
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
            ended += u64::from(end(conn, &id, SERVER_RESTART, now, executions)?);
        }
    }
    Ok(ended)
}

/// Lists sessions, newest first, including ended ones.
pub(crate) fn list(conn: &Connection, limit: u32) -> Result<Vec<SessionRecord>> {
    let mut statement = conn.prepare_cached("SELECT * FROM sessions ORDER BY seq DESC LIMIT ?1")?;
    statement.query_map([limit], read_session)?.collect()
}

fn read_session(row: &Row<'_>) -> Result<SessionRecord> {
    let ended: Option<i64> = row.get("ended_ms")?;
    Ok(SessionRecord {
        id: parse_word(row, "id", SessionId::parse)?,
        principal: row.get("principal")?,
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
