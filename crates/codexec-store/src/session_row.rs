//! The rows of sessions and package installations, and their lines in the log files.

use std::time::SystemTime;

use codexec_types::{Edge, SessionId, format_rfc3339, unix_ms};
use serde_json::{Value, json};

use crate::{
    execution_row::{context_json, truncate},
    record::{PackageInstall, PackageTarget, SessionStart},
};

const NAME_BYTES: usize = 1 << 10;

/// The row of a new session; an owned [`SessionStart`].
pub(crate) struct SessionStartRow {
    pub(crate) id: SessionId,
    pub(crate) principal: String,
    pub(crate) edge: Option<&'static str>,
    pub(crate) language: &'static str,
    pub(crate) name: Option<String>,
    pub(crate) pid: Option<u32>,
    pub(crate) working_dir: Option<String>,
    pub(crate) context: Option<String>,
    pub(crate) agent_id: Option<String>,
    pub(crate) at: SystemTime,
}

/// The row of a package installation; an owned [`PackageInstall`].
pub(crate) struct PackageInstallRow {
    pub(crate) target: PackageTarget,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) is_ok: bool,
    pub(crate) principal: String,
    pub(crate) edge: Option<&'static str>,
    pub(crate) at: SystemTime,
}

/// The reason for the end of a session whose server died.
pub(crate) const SERVER_RESTART: &str = "server_restart";

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

    /// Returns the line of the session's log file.
    pub(crate) fn log_line(&self) -> Value {
        json!({
            "type": "session_start",
            "session_id": self.id.as_str(),
            "language": self.language,
            "name": self.name,
            "pid": self.pid,
            "agent_id": self.agent_id,
            "started_at": format_rfc3339(self.at),
            "working_dir": self.working_dir,
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

    /// Returns the line of the log file of `session`.
    pub(crate) fn log_line(&self, session: &SessionId) -> Value {
        json!({
            "type": "package_install",
            "session_id": session.as_str(),
            "package": self.name,
            "version": self.version,
            "success": self.is_ok,
            "at": format_rfc3339(self.at),
        })
    }
}

/// The end of a session.
pub(crate) struct SessionEndRow {
    pub(crate) id: SessionId,
    pub(crate) reason: String,
    pub(crate) at: SystemTime,
    pub(crate) executions: u32,
}

impl SessionEndRow {
    /// Returns the line of the session's log file.
    pub(crate) fn log_line(&self, started_ms: i64) -> Value {
        json!({
            "type": "session_end",
            "session_id": self.id.as_str(),
            "reason": self.reason,
            "total_duration_ms": unix_ms(self.at).saturating_sub(started_ms).max(0),
            "executions_count": self.executions,
            "at": format_rfc3339(self.at),
        })
    }
}
