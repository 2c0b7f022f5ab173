//! MCPProxy's routes: `POST /api/v1/code/exec` and `GET /api/v1/code/scripts`, with its shapes.

use std::sync::Arc;

use codexec_compat::{CodeExecution, CodeExecutionStatus, McpproxyTools, NamedScript};
use codexec_server::mcp::HttpBody;
use codexec_server::{App, Client, Connection};
use codexec_types::Language;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::error::json_response;

/// How long a client waits before it sends a request again that found no free worker.
const RETRY_S: u64 = 30;

/// Runs code or a script. A client that disconnects cancels it.
pub(crate) async fn exec(
    app: &Arc<App>,
    tools: &Arc<McpproxyTools>,
    client: Client,
    body: &[u8],
) -> Response<HttpBody> {
    let Ok(Value::Object(arguments)) = serde_json::from_slice(body) else {
        let why = "the body must be a JSON object with `code` or `script`";
        return refuse(StatusCode::BAD_REQUEST, "INVALID_REQUEST", why);
    };
    let is_empty = |name: &str| arguments.get(name).is_none_or(|value| *value == json!(""));
    if is_empty("code") && is_empty("script") {
        return refuse(StatusCode::BAD_REQUEST, "MISSING_CODE", "code: it is required");
    }
    if client.connection.is_read_only() {
        let why = "this token may only read";
        return refuse(StatusCode::FORBIDDEN, "PERMISSION_DENIED", why);
    }
    // A busy server refuses here and now, without a task for each request.
    let language = arguments.get("language").and_then(Value::as_str).unwrap_or("javascript");
    let identity = client.connection.principal().identity();
    if let Err(busy) = app.check_queue(identity, Language::parse(language)) {
        let why = format!("{}: {busy}", busy.code());
        let refused = refuse(StatusCode::SERVICE_UNAVAILABLE, "EXECUTION_FAILED", &why);
        return with_retry_after(refused);
    }
    // A client that disconnects cancels by token and never by drop.
    let guard = client.cancel.clone().drop_guard();
    let (app, tools) = (Arc::clone(app), Arc::clone(tools));
    let running = tokio::spawn(async move { tools.code_execution(&app, arguments, &client).await });
    let executed = running.await;
    drop(guard.disarm());
    match executed {
        Ok(executed) => respond(&executed),
        Err(_) => {
            let why = "the request failed with an internal error of codexec";
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", why)
        }
    }
}

fn respond(executed: &CodeExecution) -> Response<HttpBody> {
    let answer: Value = serde_json::from_str(&executed.text).unwrap_or_default();
    let error = answer.get("error");
    let body = match error {
        Some(error) => json!({"ok": false, "error": error}),
        None => json!({"ok": true, "result": answer.get("value")}),
    };
    let text = |name| error.and_then(|error| error.get(name)).and_then(Value::as_str);
    let is_busy = text("message").is_some_and(|message| message.starts_with("BUSY:"));
    let status = match (executed.came, text("code")) {
        (CodeExecutionStatus::Fine | CodeExecutionStatus::Failed, _) => StatusCode::OK,
        (CodeExecutionStatus::Refused, _) if is_busy => StatusCode::SERVICE_UNAVAILABLE,
        (CodeExecutionStatus::Refused, Some("EXECUTION_FAILED")) => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        (CodeExecutionStatus::Refused, Some("FEATURE_DISABLED")) => StatusCode::FORBIDDEN,
        (CodeExecutionStatus::Refused, _) => StatusCode::BAD_REQUEST,
    };
    let response = json_response(status, &body);
    if is_busy { with_retry_after(response) } else { response }
}

fn with_retry_after(mut response: Response<HttpBody>) -> Response<HttpBody> {
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_S));
    response
}

pub(crate) fn refuse(status: StatusCode, code: &str, message: &str) -> Response<HttpBody> {
    let error = json!({"code": code, "message": message});
    json_response(status, &json!({"ok": false, "error": error}))
}

pub(crate) async fn scripts(
    app: &App,
    tools: &McpproxyTools,
    connection: &Connection,
) -> Response<HttpBody> {
    let entry = |script: &NamedScript| {
        let origin = if script.is_file { "file" } else { "library" };
        json!({"name": script.name, "language": script.language.name(), "where": origin})
    };
    let scripts: Vec<Value> = tools.code_scripts(app, connection).await.iter().map(entry).collect();
    json_response(StatusCode::OK, &json!({"scripts": scripts}))
}
