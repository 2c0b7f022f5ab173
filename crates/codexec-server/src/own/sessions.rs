use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use codexec_exec::packages::Packages;
use codexec_functions::defaults::LIST_LENGTH;
use codexec_store::{SessionQuery, SessionStart};
use codexec_types::{FileChanges, Grant, Language, SessionId, format_rfc3339};
use serde_json::{Value, json};

use super::OwnFunctionError;
use super::running::{language_or_own, read_language, read_worker_fields};
use crate::escaped_text::escape_name;
use crate::execute::random_bits;
use crate::fields::Fields;
use crate::outer_execution::SessionScope;
use crate::sessions::{NewSession, OpenSession, Opener, Replay};
use crate::snapshots::{Snapshot, SnapshotFilter, check_name};
use crate::{App, Client, ExecutionRequest};

const MAX_NAME_CHARS: usize = 64;
const MAX_HISTORY: u64 = 1_000;

/// The session that a request opens.
pub(super) struct SessionRequest {
    /// The language, and what the worker is made with; the session has no code yet.
    pub(super) opening: ExecutionRequest,
    pub(super) name: Option<String>,
    /// Why the client's earlier session with this name ended, if there was one.
    pub(super) replaces: Option<String>,
}

impl SessionRequest {
    /// Creates a request for a session without a name.
    pub(super) fn new(opening: ExecutionRequest) -> SessionRequest {
        SessionRequest { opening, name: None, replaces: None }
    }
}

impl App {
    pub(super) async fn start_session(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let named = read_language(&mut fields)?;
        let name = fields.text("name")?;
        let mut opening = ExecutionRequest::new(Language::TypeScript, String::new());
        read_worker_fields(&mut fields, &mut opening)?;
        fields.finish()?;
        opening.language = language_or_own(named, client)?;
        let new = SessionRequest { opening, name, replaces: None };
        let session = self.open_session(new, client).await?;
        Ok(session_entry(&session))
    }

    pub(super) async fn open_session(
        &self,
        SessionRequest { opening, name, replaces }: SessionRequest,
        client: &Client,
    ) -> Result<Arc<OpenSession>, OwnFunctionError> {
        if let Some(name) = &name {
            check_session_name(name)?;
            if let Some(session) = self.sessions.find_open(name, client) {
                return Err(OwnFunctionError::invalid(format!(
                    "name: {name:?} is open already as {}; use it, close it, or take another name",
                    session.id
                )));
            }
        }
        let policy = client.connection.policy();
        let opener = Opener::of(client);
        let permit = self.sessions.reserve(&opener)?;
        let _guard = client.delay_end();
        let id = SessionId::from_bits(random_bits()?);
        let language = opening.language;
        let resolved = opening.resolve(&policy.files).await.map_err(crate::ExecuteError::from)?;
        let admitted = policy
            .admit_session(resolved, &self.gateway.server_names(), client.outer_limits())
            .map_err(crate::ExecuteError::from)?;
        client.check_depth()?;
        let folder = self.records.create_session_folder(&id).await.map_err(folder_error)?;
        let store = self.records.store().await?;
        let servers = self.servers_in(admitted.reach().named_in_guest());
        let packages = create_packages_folder(&folder).await.map_err(folder_error)?;
        let mut run = self
            .workers
            .open_session(&admitted, servers, Some(packages))
            .await
            .map_err(crate::ExecuteError::from)?;
        let start = SessionStart {
            id: &id,
            principal: &client.principal(),
            language,
            name: name.as_deref(),
            pid: run.pid().and_then(|pid| u32::try_from(pid).ok()),
            working_dir: admitted.working_dir().map(|dir| dir.found.path.as_path()),
            context: &client.context,
            at: SystemTime::now(),
        };
        if let Err(error) = store.begin_session(&start).await {
            run.close().await;
            return Err(error.into());
        }
        let working_dir = admitted.working_dir().map(|dir| dir.found.path.clone());
        let new_session =
            NewSession { id, opener, language, name, working_dir, replaces, folder, permit };
        Ok(self.sessions.add(new_session, run))
    }

    pub(super) async fn close_session(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let handle = fields.required_text("session_id")?;
        fields.finish()?;
        let session = self.sessions.find(&handle, client)?;
        if client.outer.as_ref().is_some_and(|outer| outer.sessions.contains(&session.id)) {
            return Err(crate::SessionError::Itself(session.id.clone()).into());
        }
        let _guard = client.delay_end();
        let Some(closed) = self.sessions.end(&session, "manual").await else {
            return Err(self
                .sessions
                .find(&handle, client)
                .map_or_else(OwnFunctionError::from, |_| {
                    OwnFunctionError::invalid("session_id: it is being closed")
                }));
        };
        session.note_end_reported(client);
        client.note_nested_changes(session.working_dir.as_deref(), &closed.changes);
        let mut value = json!({
            "success": true,
            "session_id": session.id.as_str(),
            "duration_total_ms": u64::try_from(closed.duration.as_millis()).unwrap_or(u64::MAX),
            "executions_count": closed.executions,
        });
        if let (Some(fields), false) = (value.as_object_mut(), closed.changes.is_empty()) {
            fields.insert("changes".to_owned(), json!(escape_changes(closed.changes)));
        }
        Ok(value)
    }

    pub(super) fn list_sessions(
        &self,
        fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        fields.finish()?;
        let sessions: Vec<Value> = self
            .sessions
            .list(client)
            .iter()
            .map(|info| {
                json!({
                    "session_id": info.id.as_str(),
                    "language": info.language.name(),
                    "name": info.name,
                    "started_at": format_rfc3339(info.started),
                    "last_activity_at": format_rfc3339(info.last_used),
                    "executions_count": info.executions,
                    "pid": info.pid,
                    "memory_mb": mebibytes(info.memory_bytes),
                    "packages_installed": info.packages,
                })
            })
            .collect();
        Ok(json!({"sessions": sessions}))
    }

    /// Lists open sessions of all servers on this machine, and ended ones; newest first.
    pub(super) async fn session_history(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let limit = fields.number("limit", 1..=MAX_HISTORY)?.unwrap_or(LIST_LENGTH);
        fields.finish()?;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let only = match client.may(Grant::AllSessions) {
            true => None,
            false => Some(self.sessions.list(client).into_iter().map(|one| one.id).collect()),
        };
        let (query, scope) = (SessionQuery { only, limit }, client.connection.read_scope());
        let sessions = self.records.store().await?.list_sessions(query, &scope).await?;
        let sessions: Vec<Value> = sessions
            .iter()
            .map(|session| {
                json!({
                    "session_id": session.id.as_str(),
                    "language": session.language,
                    "name": session.name,
                    "started_at": format_rfc3339(session.started),
                    "ended_at": session.ended.map(format_rfc3339),
                    "reason": session.reason,
                    "executions_count": session.executions,
                    "pid": session.pid,
                    "working_dir": session.working_dir,
                })
            })
            .collect();
        Ok(json!({"sessions": sessions}))
    }

    /// Stores what is needed to restore the session.
    pub(super) async fn snapshot_session(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let handle = fields.text("session_id")?.or_else(|| calling_session(client));
        let name = fields.required_text("name")?;
        fields.finish()?;
        check_name(&name)?;
        let missing = "session_id: it is missing; it must be the id that start_session gave";
        let handle = handle.ok_or_else(|| OwnFunctionError::invalid(missing))?;
        let session = self.sessions.find(&handle, client)?;
        match session.language {
            Language::JavaScript | Language::TypeScript | Language::Python => {}
            other @ (Language::Node | Language::Bash) => {
                return Err(crate::SnapshotError::Language(other).into());
            }
        }
        let cells: Vec<_> =
            session.recorded_cells()?.iter().map(|cell| crate::RecordedCell::clone(cell)).collect();
        if let Some(outer) = &client.outer {
            let bytes = cells.iter().map(crate::RecordedCell::bytes).sum::<usize>();
            let taken = outer.allowance.take(bytes as u64);
            taken.map_err(|err| OwnFunctionError::new("STORAGE_LIMIT", err.message))?;
        }
        let snapshot = Snapshot {
            name: name.clone(),
            principal: client.principal(),
            server: self.records.store().await?.server_id().to_owned(),
            language: session.language,
            at: format_rfc3339(SystemTime::now()),
            cells,
        };
        let count = snapshot.cells.len();
        let over = self.snapshots_of(client).await?;
        self.records.snapshots(client.identity()).save(snapshot, over).await?;
        Ok(json!({"success": true, "name": name, "cells": count}))
    }

    /// Opens a new session and replays the cells with their recorded answers.
    pub(super) async fn restore_session(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        let name = fields.required_text("name")?;
        fields.finish()?;
        check_name(&name)?;
        let snapshot = self
            .records
            .snapshots(client.identity())
            .load(&name, self.snapshots_of(client).await?)
            .await?;
        let opening = ExecutionRequest::new(snapshot.language, String::new());
        let session = self.open_session(SessionRequest::new(opening), client).await?;
        let count = snapshot.cells.len();
        for (number, cell) in (1..).zip(snapshot.cells) {
            let mut request = ExecutionRequest::new(snapshot.language, cell.code.clone());
            request.input = cell.input.clone();
            request.args = cell.args.clone();
            request.session = Some(Arc::clone(&session));
            request.replayed = Some(Arc::new(Replay::new(cell)));
            let failed = match self.execute(request, client).await {
                Ok(execution) if execution.outcome.code().is_none() => None,
                Ok(execution) => Some(crate::explain_outcome(&execution)),
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = failed {
                self.sessions.end(&session, "restore_failed").await;
                let message = format!(
                    "name: cell {number} of {count} of {name:?} failed when it was replayed: {why}"
                );
                return Err(OwnFunctionError::new("RESTORE_FAILED", message));
            }
        }
        let mut value = session_entry(&session);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("cells".to_owned(), count.into());
        }
        Ok(value)
    }

    pub(super) async fn list_snapshots(
        &self,
        fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnFunctionError> {
        fields.finish()?;
        let filter = self.snapshots_of(client).await?;
        let names = self.records.snapshots(client.identity()).list(filter).await?;
        Ok(json!({"snapshots": names}))
    }

    /// Returns the snapshots that the client may use. Code may use those that its own client
    /// created.
    async fn snapshots_of(&self, client: &Client) -> Result<SnapshotFilter, OwnFunctionError> {
        let server = match client.may(Grant::AllSessions) {
            true => None,
            false => Some(self.records.store().await?.server_id().to_owned()),
        };
        Ok(SnapshotFilter { identity: client.identity().clone(), server })
    }
}

/// Escapes the paths, which a guest has chosen.
pub fn escape_changes(mut changes: FileChanges) -> FileChanges {
    let FileChanges { created, modified, deleted, held_back, conflicts, .. } = &mut changes;
    let written = [created, modified, deleted].into_iter().flatten().map(|file| &mut file.path);
    let not_written = [held_back, conflicts].into_iter().flatten().map(|file| &mut file.path);
    for path in written.chain(not_written) {
        *path = escape_name(path);
    }
    for more in [&mut changes.between_cells, &mut changes.nested].into_iter().flatten() {
        **more = escape_changes(std::mem::take(more));
    }
    changes
}

async fn create_packages_folder(folder: &Path) -> std::io::Result<PathBuf> {
    let folder = folder.to_owned();
    let made = tokio::task::spawn_blocking(move || Packages::create_session_folder(&folder));
    made.await.map_err(std::io::Error::other)?
}

fn folder_error(error: impl std::fmt::Display) -> OwnFunctionError {
    OwnFunctionError::new(
        "STORE_UNAVAILABLE",
        format!("the session's folder cannot be created: {error}"),
    )
}

/// Returns the session that the calling code runs in.
pub(super) fn calling_session(client: &Client) -> Option<String> {
    match client.scope()? {
        SessionScope::Session(id) => Some(id.as_str().to_owned()),
        SessionScope::Execution(_) => None,
    }
}

fn session_entry(session: &OpenSession) -> Value {
    json!({
        "success": true,
        "session_id": session.id.as_str(),
        "language": session.language.name(),
        "name": session.name,
        "pid": session.pid,
        "started_at": format_rfc3339(session.started),
    })
}

fn check_session_name(name: &str) -> Result<(), OwnFunctionError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._-".contains(c);
    let is_name = !name.trim().is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && name.chars().all(is_plain)
        && !name.starts_with("sess_");
    if is_name {
        return Ok(());
    }
    let name: String = name.chars().take(40).collect();
    Err(OwnFunctionError::invalid(format!(
        "name: {name:?} is not allowed; write 1 to {MAX_NAME_CHARS} letters, digits, spaces and \
         `.`, `_`, `-`, and do not begin with sess_"
    )))
}

/// Rounds to one decimal place.
#[expect(clippy::cast_precision_loss, reason = "nobody reads the last bytes of it")]
pub(super) fn mebibytes(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0
}
