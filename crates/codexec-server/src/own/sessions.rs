use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use codexec_exec::packages::Packages;
use codexec_store::SessionStart;
use codexec_types::{Changes, Grant, Language, SessionId, rfc3339};
use serde_json::{Value, json};

use super::OwnError;
use super::running::language;
use crate::execute::random_bits;
use crate::fields::Fields;
use crate::inside::{Scope, within};
use crate::plain::plain;
use crate::sessions::{Opener, Opening, Replay, Session};
use crate::snapshots::{Snapshot, Whose, check_name};
use crate::{App, Client, Wanted};

const MAX_NAME_CHARS: usize = 64;
const DEFAULT_HISTORY: u64 = 20;
const MAX_HISTORY: u64 = 1_000;

impl App {
    pub(super) async fn start_session(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnError> {
        let language = language(&mut fields)?.unwrap_or(Language::Python);
        let name = fields.text("name")?;
        let working_dir = fields.text("working_dir")?.map(PathBuf::from);
        fields.finish()?;
        let session = self.open_session(language, name, working_dir, client).await?;
        Ok(started(&session))
    }

    pub(super) async fn open_session(
        &self,
        language: Language,
        name: Option<String>,
        working_dir: Option<PathBuf>,
        client: &Client,
    ) -> Result<Arc<Session>, OwnError> {
        if let Some(name) = &name {
            is_name(name)?;
            if let Some(session) = self.sessions.named(name, client) {
                return Err(OwnError::invalid(format!(
                    "name: {name:?} is open already as {}; use it, close it, or take another name",
                    session.id
                )));
            }
        }
        let policy = self.in_force.policy();
        let opener = Opener::of(client);
        let place = self.sessions.place(&opener)?;
        let _begun = client.begin();
        let id = SessionId::from_bits(random_bits()?);
        let mut wanted = Wanted::new(language, String::new());
        wanted.working_dir = working_dir;
        let request = wanted.found(&policy.files).await.map_err(crate::ExecuteError::from)?;
        let admitted = policy
            .admit_session(request, &self.gateway.server_names())
            .map_err(crate::ExecuteError::from)?;
        let admitted = within(admitted, client)?;
        let folder = self.records.folder_for(&id).await.map_err(no_folder)?;
        let store = self.records.store().await?;
        let servers = self.visible_servers(admitted.tools());
        let packages = packages_folder(&folder).await.map_err(no_folder)?;
        let mut run = self
            .workers
            .open(&admitted, servers, Some(packages))
            .await
            .map_err(crate::ExecuteError::from)?;
        let start = SessionStart {
            id: &id,
            principal: &client.principal,
            language,
            name: name.as_deref(),
            pid: run.pid().and_then(|pid| u32::try_from(pid).ok()),
            working_dir: admitted.working_dir().map(|dir| dir.found.path.as_path()),
            context: &client.context,
            at: SystemTime::now(),
        };
        if let Err(error) = store.session_started(&start).await {
            run.close().await;
            return Err(error.into());
        }
        let opening = Opening { id, opener, language, name, folder, place };
        Ok(self.sessions.add(opening, run))
    }

    pub(super) async fn close_session(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnError> {
        let handle = fields.required_text("session_id")?;
        fields.finish()?;
        let session = self.sessions.find(&handle, client)?;
        if client.inside.as_ref().is_some_and(|inside| inside.sessions.contains(&session.id)) {
            return Err(crate::SessionError::Itself(session.id.clone()).into());
        }
        let _begun = client.begin();
        let Some(closed) = self.sessions.end(&session, "manual").await else {
            return Err(self.sessions.find(&handle, client).map_or_else(OwnError::from, |_| {
                OwnError::invalid("session_id: it is being closed")
            }));
        };
        let mut value = json!({
            "success": true,
            "session_id": session.id.as_str(),
            "duration_total_ms": u64::try_from(closed.duration.as_millis()).unwrap_or(u64::MAX),
            "executions_count": closed.executions,
        });
        if let (Some(fields), false) = (value.as_object_mut(), closed.changes.is_empty()) {
            fields.insert("changes".to_owned(), json!(with_plain_paths(closed.changes)));
        }
        Ok(value)
    }

    pub(super) fn list_sessions(&self, fields: Fields, client: &Client) -> Result<Value, OwnError> {
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
                    "started_at": rfc3339(info.started),
                    "last_activity_at": rfc3339(info.last_used),
                    "executions_count": info.executions,
                    "pid": info.pid,
                    "memory_mb": mebibytes(info.memory_bytes),
                    "packages_installed": info.packages,
                })
            })
            .collect();
        Ok(json!({"sessions": sessions}))
    }

    /// Open ones of every server that runs here, and those that have ended; newest first.
    pub(super) async fn session_history(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnError> {
        let limit = fields.number("limit", 1..=MAX_HISTORY)?.unwrap_or(DEFAULT_HISTORY);
        fields.finish()?;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let sessions = self.records.store().await?.sessions(limit).await?;
        let open = self.sessions.list(client);
        let is_theirs = |session: &&codexec_store::Session| {
            session.principal == client.principal.as_str()
                && (client.may(Grant::AllSessions) || open.iter().any(|one| one.id == session.id))
        };
        let sessions: Vec<Value> = sessions
            .iter()
            .filter(is_theirs)
            .map(|session| {
                json!({
                    "session_id": session.id.as_str(),
                    "language": session.language,
                    "name": session.name,
                    "started_at": rfc3339(session.started),
                    "ended_at": session.ended.map(rfc3339),
                    "reason": session.reason,
                    "executions_count": session.executions,
                    "pid": session.pid,
                    "working_dir": session.working_dir,
                })
            })
            .collect();
        Ok(json!({"sessions": sessions}))
    }

    /// Keeps what is needed to make the session anew.
    pub(super) async fn snapshot_session(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnError> {
        let handle = fields.text("session_id")?.or_else(|| own_session(client));
        let name = fields.required_text("name")?;
        fields.finish()?;
        check_name(&name)?;
        let missing = "session_id: it is missing; it must be the id that start_session gave";
        let handle = handle.ok_or_else(|| OwnError::invalid(missing))?;
        let session = self.sessions.find(&handle, client)?;
        match session.language {
            Language::JavaScript | Language::TypeScript | Language::Python => {}
            other @ (Language::Node | Language::Bash) => {
                return Err(crate::SnapshotError::Language(other).into());
            }
        }
        let cells: Vec<_> =
            session.recorded()?.iter().map(|cell| crate::Recorded::clone(cell)).collect();
        if let Some(inside) = &client.inside {
            let bytes = cells.iter().map(crate::Recorded::bytes).sum::<usize>();
            let taken = inside.allowance.take(bytes as u64);
            taken.map_err(|err| OwnError::new("KEPT_LIMIT", err.message))?;
        }
        let snapshot = Snapshot {
            name: name.clone(),
            principal: client.principal.clone(),
            server: self.records.store().await?.server().to_owned(),
            language: session.language,
            at: rfc3339(SystemTime::now()),
            cells,
        };
        let count = snapshot.cells.len();
        let over = self.snapshots_of(client).await?;
        self.records.snapshots().save(snapshot, over).await?;
        Ok(json!({"success": true, "name": name, "cells": count}))
    }

    /// A new session in which the cells run again, with the answers that they had then.
    pub(super) async fn restore_session(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnError> {
        let name = fields.required_text("name")?;
        fields.finish()?;
        check_name(&name)?;
        let snapshot =
            self.records.snapshots().load(&name, self.snapshots_of(client).await?).await?;
        let session = self.open_session(snapshot.language, None, None, client).await?;
        let count = snapshot.cells.len();
        for (number, cell) in (1..).zip(snapshot.cells) {
            let mut wanted = Wanted::new(snapshot.language, cell.code.clone());
            wanted.input = cell.input.clone();
            wanted.args = cell.args.clone();
            wanted.session = Some(Arc::clone(&session));
            wanted.replayed = Some(Arc::new(Replay::new(cell)));
            let failed = match self.execute(wanted, client).await {
                Ok(execution) if execution.outcome.code().is_none() => None,
                Ok(execution) => Some(crate::explanation(&execution)),
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = failed {
                self.sessions.end(&session, "restore_failed").await;
                let message = format!(
                    "name: cell {number} of {count} of {name:?} does not run as it did: {why}"
                );
                return Err(OwnError::new("RESTORE_FAILED", message));
            }
        }
        let mut value = started(&session);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("cells".to_owned(), count.into());
        }
        Ok(value)
    }

    pub(super) async fn list_snapshots(
        &self,
        fields: Fields,
        client: &Client,
    ) -> Result<Value, OwnError> {
        fields.finish()?;
        let whose = self.snapshots_of(client).await?;
        let names = self.records.snapshots().list(whose).await?;
        Ok(json!({"snapshots": names}))
    }

    /// Code uses the snapshots that its own client made.
    async fn snapshots_of(&self, client: &Client) -> Result<Whose, OwnError> {
        let server = match client.may(Grant::AllSessions) {
            true => None,
            false => Some(self.records.store().await?.server().to_owned()),
        };
        Ok(Whose { principal: client.principal.clone(), server })
    }
}

/// The same changes, with paths that can be shown: a guest has chosen them.
fn with_plain_paths(mut changes: Changes) -> Changes {
    let Changes { created, modified, deleted, held_back, conflicts, .. } = &mut changes;
    let written = [created, modified, deleted].into_iter().flatten().map(|file| &mut file.path);
    let not_written = [held_back, conflicts].into_iter().flatten().map(|file| &mut file.path);
    for path in written.chain(not_written) {
        *path = plain(path);
    }
    changes
}

async fn packages_folder(folder: &Path) -> std::io::Result<PathBuf> {
    let folder = folder.to_owned();
    let made = tokio::task::spawn_blocking(move || Packages::folder_for_session(&folder));
    made.await.map_err(std::io::Error::other)?
}

fn no_folder(error: impl std::fmt::Display) -> OwnError {
    OwnError::new("STORE_UNAVAILABLE", format!("a folder for it cannot be made: {error}"))
}

/// The one that the code which asks runs in.
pub(super) fn own_session(client: &Client) -> Option<String> {
    match client.scope()? {
        Scope::Session(id) => Some(id.as_str().to_owned()),
        Scope::Execution(_) => None,
    }
}

fn started(session: &Session) -> Value {
    json!({
        "success": true,
        "session_id": session.id.as_str(),
        "language": session.language.name(),
        "name": session.name,
        "pid": session.pid,
        "started_at": rfc3339(session.started),
    })
}

fn is_name(name: &str) -> Result<(), OwnError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._-".contains(c);
    let is_name = !name.trim().is_empty()
        && name.chars().count() <= MAX_NAME_CHARS
        && name.chars().all(is_plain)
        && !name.starts_with("sess_");
    if is_name {
        return Ok(());
    }
    let name: String = name.chars().take(40).collect();
    Err(OwnError::invalid(format!(
        "name: {name:?} is not allowed; write 1 to {MAX_NAME_CHARS} letters, digits, spaces and \
         `.`, `_`, `-`, and do not begin with sess_"
    )))
}

/// With one digit behind the point.
#[expect(clippy::cast_precision_loss, reason = "nobody reads the last bytes of it")]
pub(super) fn mebibytes(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0
}
