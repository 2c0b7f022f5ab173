//! Running code: in a new worker, in a session, or a saved script.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use codexec_types::{Json, Language, Policy, PolicyRefusal, RequestedLimits};
use serde_json::Value;

use super::argument_files::show_argument_files;
use super::sessions::SessionRequest;
use super::{OwnFunctionError, OwnFunctionResult, shape};
use crate::fields::{FieldError, Fields};
use crate::sessions::OpenSession;
use crate::working_dir::resolve_dir;
use crate::{App, Client, ExecuteError, ExecutionRequest, FinishedExecution, SessionError};

impl App {
    /// Runs code or a script, in a new worker or in a session.
    pub async fn execute_code(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<FinishedExecution, OwnFunctionError> {
        let policy = client.connection.policy();
        let code = fields.text("code")?;
        let script = fields.text("script")?;
        let version = read_version(&mut fields)?;
        let language = read_language(&mut fields)?;
        let session = fields.text("session")?;
        let mut request = ExecutionRequest::new(Language::TypeScript, String::new());
        read_common_fields(&mut fields, &policy, &mut request)?;
        fields.finish()?;
        match (code, script) {
            (Some(code), None) => request.code = code,
            (None, Some(script)) => {
                return self.run_saved_script(&script, version, request, session, client).await;
            }
            (Some(_), Some(_)) => {
                return Err(OwnFunctionError::invalid("code, script: both are given; give one"));
            }
            (None, None) => {
                let message = "code: it is missing; it must be a string (or give `script`, the \
                               name of a saved one)";
                return Err(OwnFunctionError::invalid(message));
            }
        }
        match session {
            Some(handle) => {
                let opening = request.split_off_session();
                let found = self.session_for(&handle, language, opening, client).await?;
                bind_to_session(&mut request, found, language)?;
                let executed = self.execute(request, client).await;
                Ok(executed.map_err(|error| error.with_session_handle(&handle))?)
            }
            None => {
                request.language = language.ok_or_else(missing_language)?;
                Ok(self.execute(request, client).await?)
            }
        }
    }

    pub async fn send_to_session(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<FinishedExecution, OwnFunctionError> {
        let policy = client.connection.policy();
        let id = fields.text("session_id")?;
        let code = fields.required_text("code")?;
        let language = read_language(&mut fields)?;
        let mut request = ExecutionRequest::new(Language::TypeScript, code);
        read_common_fields(&mut fields, &policy, &mut request)?;
        fields.finish()?;
        let session = match (id, language) {
            (Some(id), _) => {
                let session = self.sessions.find(&id, client)?;
                let opening = request.split_off_session();
                self.check_session_dir(&session, opening.working_dir, client).await?;
                session
            }
            (None, Some(language)) => {
                let opening = ExecutionRequest { language, ..request.split_off_session() };
                self.open_session(SessionRequest::new(opening), client).await?
            }
            (None, None) => {
                let message = "session_id: it is missing; it must be the id that start_session \
                               gave (or give `language` to open a new one)";
                return Err(OwnFunctionError::invalid(message));
            }
        };
        bind_to_session(&mut request, session, language)?;
        Ok(self.execute(request, client).await?)
    }

    pub async fn run_script(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<FinishedExecution, OwnFunctionError> {
        let policy = client.connection.policy();
        let name = fields.required_text("name")?;
        let version = read_version(&mut fields)?;
        let session = fields.text("session_id")?;
        let mut request = ExecutionRequest::new(Language::TypeScript, String::new());
        read_common_fields(&mut fields, &policy, &mut request)?;
        fields.finish()?;
        self.run_saved_script(&name, version, request, session, client).await
    }

    /// Runs a saved script in a new worker; `request` has everything but its code and language.
    pub async fn run_saved(
        &self,
        name: &str,
        version: Option<u32>,
        request: ExecutionRequest,
        client: &Client,
    ) -> Result<FinishedExecution, OwnFunctionError> {
        self.run_saved_script(name, version, request, None, client).await
    }

    pub(super) async fn save_and_run_script(
        &self,
        mut fields: Fields,
        client: &Client,
    ) -> Result<OwnFunctionResult, OwnFunctionError> {
        let policy = client.connection.policy();
        let mut request = ExecutionRequest::new(Language::TypeScript, String::new());
        let session = fields.text("session_id")?;
        read_common_fields(&mut fields, &policy, &mut request)?;
        let saved = self.save_script(fields, client).await?;
        let name = saved.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let execution = self.run_saved_script(&name, None, request, session, client).await?;
        let mut owned = super::render_execution(&execution, client, shape::execution);
        if let Some(value) = owned.value.as_object_mut() {
            value.insert("script".to_owned(), saved);
        }
        Ok(owned)
    }

    /// Runs a saved script, after checking its input and its packages.
    async fn run_saved_script(
        &self,
        name: &str,
        version: Option<u32>,
        mut request: ExecutionRequest,
        handle: Option<String>,
        client: &Client,
    ) -> Result<FinishedExecution, OwnFunctionError> {
        let script = self.find_script(name, version, client).await?;
        self.scripts.check_input(&script.meta, &request.input).await?;
        request.language = script.meta.language;
        let session = match &handle {
            Some(handle) => {
                let (language, opening) = (Some(request.language), request.split_off_session());
                Some(self.session_for(handle, language, opening, client).await?)
            }
            None => {
                show_argument_files(&mut request, &client.connection.policy().files).await;
                None
            }
        };
        self.check_packages(&script.meta, session.as_deref()).await?;
        request.code = script.code;
        request.script = Some((script.meta.name.clone(), script.version));
        if let Some(session) = session {
            bind_to_session(&mut request, session, Some(script.meta.language))?;
        }
        let executed = self.execute(request, client).await;
        let is_fine = executed.as_ref().is_ok_and(|execution| execution.outcome.code().is_none());
        if let Err(error) =
            self.scripts.record_run(&script.meta.name, SystemTime::now(), is_fine).await
        {
            tracing::warn!(%error, "a script's run was not counted");
        }
        Ok(executed.map_err(|error| match &handle {
            Some(handle) => error.with_session_handle(handle),
            None => error,
        })?)
    }

    /// Returns the session with this id or name. Opens a new one if no open session
    /// of the client has this name, or the client knows that the session has ended.
    async fn session_for(
        &self,
        handle: &str,
        language: Option<Language>,
        opening: ExecutionRequest,
        client: &Client,
    ) -> Result<Arc<OpenSession>, OwnFunctionError> {
        if let Some(session) = self.sessions.find_open(handle, client) {
            if !session.is_end_reported() {
                self.check_session_dir(&session, opening.working_dir, client).await?;
                return Ok(session);
            }
            // The client knows of the end before the session is closed.
            self.sessions.end(&session, "process_exit").await;
        }
        if handle.starts_with("sess_") {
            return Ok(self.sessions.find(handle, client)?);
        }
        let replaces = self.sessions.check_new_name(handle, client)?;
        let language = language.ok_or_else(missing_language)?;
        let (opening, name) = (ExecutionRequest { language, ..opening }, Some(handle.to_owned()));
        self.open_session(SessionRequest { opening, name, replaces }, client).await
    }

    /// THREAT[FIL-15]: code that names a directory never acts in another one.
    async fn check_session_dir(
        &self,
        session: &OpenSession,
        asked: Option<PathBuf>,
        client: &Client,
    ) -> Result<(), ExecuteError> {
        let (Some(asked), dir) = (asked, session.working_dir.as_deref()) else { return Ok(()) };
        if Some(asked.as_path()) == dir {
            return Ok(());
        }
        let policy = client.connection.policy();
        let found = resolve_dir(asked, &policy.files).await?;
        if Some(found.path.as_path()) == dir {
            return Ok(());
        }
        // A client that may not use the directory must not learn whether it exists, either.
        if let Err(why) = policy.files.check(&found.path) {
            return Err(PolicyRefusal::WorkingDir { path: found.path, why }.into());
        }
        let dir = dir.map(Path::to_owned);
        Err(SessionError::OtherDir { id: session.id.clone(), dir }.into())
    }
}

fn bind_to_session(
    request: &mut ExecutionRequest,
    session: Arc<OpenSession>,
    asked: Option<Language>,
) -> Result<(), OwnFunctionError> {
    let is_script = |language| matches!(language, Language::JavaScript | Language::TypeScript);
    let is_same = |language| {
        language == session.language || (is_script(language) && is_script(session.language))
    };
    if let Some(asked) = asked.filter(|asked| !is_same(*asked)) {
        return Err(OwnFunctionError::invalid(format!(
            "language: {} is a {} session and cannot run {asked}; leave `language` out, or use \
             another session",
            session.id, session.language
        )));
    }
    request.language = session.language;
    request.session = Some(session);
    Ok(())
}

/// Reads the fields that all functions which run code have in common.
fn read_common_fields(
    fields: &mut Fields,
    policy: &Policy,
    request: &mut ExecutionRequest,
) -> Result<(), FieldError> {
    request.input = fields.take("input").map_or_else(Json::null, |value| Json::from_value(&value));
    request.args = fields.texts("args")?.unwrap_or_default();
    read_worker_fields(fields, request)?;
    let max_ms = u64::try_from(policy.max_wall.as_millis()).unwrap_or(u64::MAX);
    let wall = fields.number("timeout_ms", 1..=max_ms)?.map(Duration::from_millis);
    let allowed_tools = fields.texts("allowed_tools")?;
    let allowed_servers = fields.texts("allowed_servers")?;
    let most = u64::from(policy.limits.tool_calls);
    let calls = fields.number("max_tool_calls", 0..=most)?;
    let tool_calls = calls.and_then(|calls| u32::try_from(calls).ok());
    request.asked = RequestedLimits { wall, tool_calls, allowed_tools, allowed_servers };
    Ok(())
}

/// Reads the fields that say what a new worker is made with.
pub(super) fn read_worker_fields(
    fields: &mut Fields,
    request: &mut ExecutionRequest,
) -> Result<(), FieldError> {
    request.working_dir = fields.text("working_dir")?.map(Into::into);
    Ok(())
}

/// Returns the language that is named or, inside code, the code's own.
pub(super) fn language_or_own(
    named: Option<Language>,
    client: &Client,
) -> Result<Language, FieldError> {
    let own = || client.outer.as_ref().map(|outer| outer.packages.language);
    named.or_else(own).ok_or_else(missing_language)
}

/// Code does not tell its language, and in the wrong one it may even run.
fn missing_language() -> FieldError {
    FieldError::Invalid {
        field: "language".to_owned(),
        problem: "it is missing".to_owned(),
        allowed: format!("it must be one of {}", Language::ALL.map(Language::name).join(", ")),
    }
}

pub(super) fn read_language(fields: &mut Fields) -> Result<Option<Language>, FieldError> {
    let names = Language::ALL.map(|language| (language.name(), language));
    let short = Language::ALL.map(|language| (language.short(), language));
    fields.choice("language", &[names, short].concat())
}

pub(super) fn read_version(fields: &mut Fields) -> Result<Option<u32>, FieldError> {
    let version = fields.number("version", 1..=u64::from(u32::MAX))?;
    Ok(version.and_then(|version| u32::try_from(version).ok()))
}
