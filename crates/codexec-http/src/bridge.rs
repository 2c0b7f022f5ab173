//! The bridge of code-executor, for programs outside the sandbox: `POST /` calls a tool, and
//! `GET /mcp/tools` finds tools. Its bodies are `{result}`, `{tools}` and `{error, ..}`.

use std::sync::Arc;

use codexec_server::mcp::HttpBody;
use codexec_server::{App, Connection, Fields};
use codexec_types::{Ask, CallCode, CallError, Json, Language};
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};

use crate::error::{HttpError, json_response};

/// The words of a search, as code-executor allows them.
const MAX_QUERY_CHARS: usize = 100;
/// A client that finds the server busy waits this long, if nothing else is known.
const RETRY_S: u64 = 30;

/// Calls the tool that the body names.
pub(crate) async fn call(
    app: &Arc<App>,
    connection: &Connection,
    body: &[u8],
) -> Response<HttpBody> {
    let (name, params) = match read_call(body) {
        Ok(call) => call,
        Err(why) => return refuse(StatusCode::BAD_REQUEST, &why, Map::new()),
    };
    if connection.is_read_only() {
        let suggestion = json!("use a token with the scope `write`");
        let more = Map::from_iter([("suggestion".to_owned(), suggestion)]);
        return refuse(StatusCode::FORBIDDEN, "this token may only read", more);
    }
    let ask = Ask::Named { name, args: Json::from_value(&params) };
    let allowed = &connection.policy().tools;
    match app.gateway.answer(ask, allowed, Language::TypeScript).await {
        Ok(result) => {
            let result: Value = serde_json::from_str(result.text()).unwrap_or_default();
            json_response(StatusCode::OK, &json!({"result": result}))
        }
        Err(error) => refuse_call(&error, connection),
    }
}

fn read_call(body: &[u8]) -> Result<(String, Value), String> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
        return Err("the body must be a JSON object with `toolName` and `params`".to_owned());
    };
    let mut fields = Fields::new(fields);
    let name = fields.required_text("toolName").map_err(|error| error.to_string())?;
    let params = fields.take("params").unwrap_or_else(|| json!({}));
    fields.finish().map_err(|error| error.to_string())?;
    match params.is_object() {
        true => Ok((name, params)),
        false => Err("params: it must be an object".to_owned()),
    }
}

/// Lists the tools whose name or description has one of the words, or all tools.
pub(crate) async fn find(
    app: &Arc<App>,
    connection: &Connection,
    words: Option<String>,
) -> Response<HttpBody> {
    let words = words.unwrap_or_default();
    let is_word = |c: char| c.is_ascii_alphanumeric() || " _-".contains(c);
    if words.chars().count() > MAX_QUERY_CHARS || !words.chars().all(is_word) {
        let why = format!("q: write at most {MAX_QUERY_CHARS} of A-Z a-z 0-9 space _ -");
        return refuse(StatusCode::BAD_REQUEST, &why, Map::new());
    }
    let words = words.split_whitespace().map(str::to_owned).collect();
    let allowed = &connection.policy().tools;
    let found = app.gateway.answer(Ask::Discover { words }, allowed, Language::TypeScript).await;
    match found {
        Ok(tools) => {
            let tools: Value = serde_json::from_str(tools.text()).unwrap_or_default();
            json_response(StatusCode::OK, &json!({"tools": tools}))
        }
        Err(error) => refuse_call(&error, connection),
    }
}

fn refuse_call(error: &CallError, connection: &Connection) -> Response<HttpBody> {
    let mut more = Map::new();
    let status = match error.code {
        CallCode::InvalidArgs => StatusCode::BAD_REQUEST,
        CallCode::ToolNotFound => StatusCode::NOT_FOUND,
        CallCode::ServerNotAllowed | CallCode::ToolNotAllowed | CallCode::ToolQuarantined => {
            let allowed = connection.policy();
            let allowed: Vec<Vec<String>> = allowed
                .tools
                .lists()
                .iter()
                .map(|list| list.iter().map(ToString::to_string).collect())
                .collect();
            more.insert("allowedTools".to_owned(), json!(allowed));
            let suggestion = "call a tool that `GET /mcp/tools` lists";
            more.insert("suggestion".to_owned(), suggestion.into());
            StatusCode::FORBIDDEN
        }
        CallCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        CallCode::CircuitOpen | CallCode::ServiceUnavailable => StatusCode::SERVICE_UNAVAILABLE,
        // The tool itself, or its server, failed: that is an answer of the tool.
        CallCode::UpstreamError => StatusCode::OK,
    };
    let is_later = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
    let retry = is_later.contains(&status).then(|| error.retry_s.unwrap_or(RETRY_S));
    if let Some(seconds) = retry {
        more.insert("retryAfter".to_owned(), seconds.into());
    }
    let mut response = refuse(status, &error.message, more);
    if let Some(seconds) = retry {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Formats a refusal of the edge as clients of the bridge expect it.
pub(crate) fn refuse_request(error: HttpError, requests_per_minute: u32) -> Response<HttpBody> {
    let (status, text) = (error.status(), error.to_string());
    let mut more = Map::new();
    match &error {
        HttpError::RateLimit { retry_s } => {
            more.insert("retryAfter".to_owned(), (*retry_s).into());
            more.insert("limit".to_owned(), requests_per_minute.into());
            more.insert("window".to_owned(), "60s".into());
        }
        HttpError::NotFound | HttpError::Method(_) => {
            more.insert("validRoutes".to_owned(), json!(["POST /", "GET /mcp/tools"]));
        }
        _ => {}
    }
    let body = refuse(status, &text, more);
    // The headers are those of every refusal.
    let (mut parts, _) = error.into_response().into_parts();
    parts.headers.remove(http::header::CONTENT_LENGTH);
    Response::from_parts(parts, body.into_body())
}

fn refuse(status: StatusCode, error: &str, more: Map<String, Value>) -> Response<HttpBody> {
    let mut body = Map::from_iter([("error".to_owned(), error.into())]);
    body.extend(more);
    json_response(status, &Value::Object(body))
}
