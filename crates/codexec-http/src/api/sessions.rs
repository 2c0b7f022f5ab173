//! Sessions, which keep their variables between executions.

use codexec_functions::OwnFunction;
use codexec_server::SessionInfo;
use codexec_server::own::escape_changes;
use codexec_store::{SessionQuery, SessionRecord};
use codexec_types::{SessionId, format_rfc3339};
use http::StatusCode;
use serde_json::{Value, json};

use super::execution_view::{milliseconds, without_nulls};
use super::{Answer, ApiError, ApiRequest, ok};
use crate::error::json_response;

const MAX_LISTED: u32 = 200;

/// Lists the open sessions of this process, or all that are recorded.
pub(super) async fn list(mut request: ApiRequest<'_>) -> Answer {
    let mut fields = codexec_server::Fields::new(std::mem::take(&mut request.query));
    let is_all = fields.choice("state", &[("open", false), ("all", true)])?.unwrap_or(false);
    fields.finish()?;
    let scope = request.connection().read_scope();
    let open = request.app().sessions.list_in(&scope);
    let mut items: Vec<Value> = open.iter().map(open_session).collect();
    if is_all {
        let query = SessionQuery { only: None, limit: MAX_LISTED };
        let recorded = request.app().records.store().await?.list_sessions(query, &scope).await?;
        let is_open = |record: &&SessionRecord| open.iter().any(|one| one.id == record.id);
        items.extend(recorded.iter().filter(|record| !is_open(record)).map(recorded_session));
    }
    ok(&json!({"items": items}))
}

pub(super) async fn get(request: ApiRequest<'_>) -> Answer {
    let id = parse_id(&request)?;
    let scope = request.connection().read_scope();
    if let Some(info) = request.app().sessions.list_in(&scope).iter().find(|one| one.id == id) {
        return ok(&open_session(info));
    }
    let query = SessionQuery { only: Some(vec![id]), limit: 1 };
    let recorded = request.app().records.store().await?.list_sessions(query, &scope).await?;
    ok(&recorded_session(recorded.first().ok_or_else(no_session)?))
}

pub(super) async fn open(mut request: ApiRequest<'_>) -> Answer {
    let client = request.client();
    let arguments = std::mem::take(&mut request.body);
    let app = request.app();
    let opened = app.call_own_function(OwnFunction::StartSession, arguments, &client).await?;
    let id = opened.value.get("session_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let scope = request.connection().read_scope();
    let all = app.sessions.list_in(&scope);
    let info = all.iter().find(|one| one.id.as_str() == id);
    Ok(json_response(StatusCode::CREATED, &info.map(open_session).ok_or_else(no_session)?))
}

pub(super) async fn close(request: ApiRequest<'_>) -> Answer {
    let id = parse_id(&request)?;
    let scope = request.connection().read_scope();
    let closed = request.app().sessions.end_in(&id, &scope).await.ok_or_else(no_session)?;
    ok(&json!({
        "id": id.as_str(),
        "duration_ms": milliseconds(closed.duration),
        "executions": closed.executions,
        "files": escape_changes(closed.changes),
    }))
}

/// Sessions of others get the same answer as those that never existed.
fn parse_id(request: &ApiRequest<'_>) -> Result<SessionId, ApiError> {
    SessionId::parse(request.path(0)).ok_or_else(no_session)
}

fn no_session() -> ApiError {
    let message = "there is no such session";
    ApiError::new(StatusCode::NOT_FOUND, "SESSION_NOT_FOUND", message)
}

fn open_session(info: &SessionInfo) -> Value {
    without_nulls(json!({
        "id": info.id.as_str(),
        "state": "open",
        "language": info.language.name(),
        "name": info.name,
        "started": format_rfc3339(info.started),
        "last_used": format_rfc3339(info.last_used),
        "executions": info.executions,
        "memory_bytes": info.memory_bytes,
        "packages": info.packages,
        "principal": info.identity.to_string(),
    }))
}

fn recorded_session(record: &SessionRecord) -> Value {
    let state = if record.ended.is_some() { "ended" } else { "open elsewhere" };
    without_nulls(json!({
        "id": record.id.as_str(),
        "state": state,
        "language": record.language,
        "name": record.name,
        "started": format_rfc3339(record.started),
        "ended": record.ended.map(format_rfc3339),
        "reason": record.reason,
        "executions": record.executions.unwrap_or(0),
        "principal": record.identity.to_string(),
    }))
}
