//! The rows of sessions, and the lines of their log files.

use std::time::SystemTime;

use codexec_types::{
    Edge, Identity, Language, RequestOrigin, SessionId, format_rfc3339, from_unix_ms, unix_ms,
};
use rusqlite::{Connection, OptionalExtension, Result, Row, named_params, params};

use crate::{
    ReadScope, SessionQuery,
    execution::SessionRecord,
    owner,
    read::{in_scope, parse_json, parse_optional_word, parse_word},
    record::{PackageInstall, PackageTarget, SessionStart},
    savepoint::run_atomically,
    write::{context_json, json, truncate},
};

/// The limit of a list of sessions.
const SESSIONS_MAX: u32 = 1_000;

const NAME_BYTES: usize = 1 << 10;

/// The reason for the end of a session whose server died.
pub(crate) const SERVER_RESTART: &str = "server_restart";

/// The row of a new session; an owned [`SessionStart`].
pub(crate) struct SessionStartRow {
    id: SessionId,
    principal: String,
    edge: Option<&'static str>,
    language: &'static str,
    name: Option<String>,
    pid: Option<u32>,
    working_dir: Option<String>,
    context: Option<String>,
    agent_id: Option<String>,
    at: SystemTime,
}

/// The row of a package installation; an owned [`PackageInstall`].
pub(crate) struct PackageInstallRow {
    target: PackageTarget,
    name: String,
    version: Option<String>,
    is_ok: bool,
    principal: String,
    edge: Option<&'static str>,
    at: SystemTime,
}

impl SessionStartRow {
    pub(crate) fn new(start: &SessionStart<'_>) -> SessionStartRow {
        SessionStartRow {
            id: start.id.clone(),
            principal: start.principal.identity().to_string(),
            edge: start.principal.edge().map(Edge::name),
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
        let line = serde_json::json!({
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
                "INSERT INTO sessions (id, owner, principal, edge, language, name, pid,
                     working_dir, context, started_ms)
                 VALUES (:id, :owner, :principal, :edge, :language, :name, :pid, :working_dir,
                     :context, :started_ms)",
            )?;
            statement.execute(named_params! {
                ":id": self.id.as_str(),
                ":owner": owner,
                ":principal": self.principal,
                ":edge": self.edge,
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

impl PackageInstallRow {
    pub(crate) fn new(install: &PackageInstall<'_>) -> PackageInstallRow {
        PackageInstallRow {
            target: install.target.clone(),
            name: install.name.to_owned(),
            version: install.version.map(str::to_owned),
            is_ok: install.is_ok,
            principal: install.principal.identity().to_string(),
            edge: install.principal.edge().map(Edge::name),
            at: install.at,
        }
    }

    pub(crate) fn insert(&self, conn: &Connection, owner: &str) -> Result<()> {
        match &self.target {
            PackageTarget::Session(session) => self.insert_for_session(conn, owner, session),
            PackageTarget::Everybody(language) => self.insert_shared(conn, *language),
        }
    }

    fn insert_shared(&self, conn: &Connection, language: Language) -> Result<()> {
        let mut statement = conn.prepare_cached(
            "INSERT INTO shared_packages (language, name, version, is_ok, principal, edge, at_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let (language, at_ms) = (language.name(), unix_ms(self.at));
        let PackageInstallRow { name, version, is_ok, principal, edge, .. } = self;
        statement.execute(params![language, name, version, is_ok, principal, edge, at_ms])?;
        Ok(())
    }

    fn insert_for_session(
        &self,
        conn: &Connection,
        owner: &str,
        session: &SessionId,
    ) -> Result<()> {
        let line = serde_json::json!({
            "type": "package_install",
            "session_id": session.as_str(),
            "package": self.name,
            "version": self.version,
            "success": self.is_ok,
            "at": format_rfc3339(self.at),
        });
        run_atomically(conn, || {
            let mut statement = conn.prepare_cached(
                "INSERT INTO session_packages (session, name, version, is_ok, principal, edge, at_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            let (id, at_ms) = (session.as_str(), unix_ms(self.at));
            let PackageInstallRow { name, version, is_ok, principal, edge, .. } = self;
            statement.execute(params![id, name, version, is_ok, principal, edge, at_ms])?;
            queue_log_line(conn, owner, session, &line)
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
    let line = serde_json::json!({
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
        ":limit": query.limit.min(SESSIONS_MAX),
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
