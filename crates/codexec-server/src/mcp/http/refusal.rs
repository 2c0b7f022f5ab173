//! Responses without a stream, and refusals.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use super::HttpBody;

/// The reason why a request is not answered, as the client sees it.
pub(super) struct Refusal {
    status: StatusCode,
    body: Value,
    header: Option<(&'static str, &'static str)>,
}

impl Refusal {
    pub(super) fn json(status: StatusCode, body: Value) -> Refusal {
        Refusal { status, body, header: None }
    }

    /// Refuses a message with a JSON-RPC error that has the id of the message.
    pub(super) fn rpc(raw: &Value, code: i32, message: &str) -> Refusal {
        let id = raw.get("id").cloned().unwrap_or_default();
        let error = json!({"code": code, "message": message});
        Refusal::json(StatusCode::BAD_REQUEST, json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    pub(super) fn invalid(raw: &Value, message: &str) -> Refusal {
        Refusal::rpc(raw, -32_600, message)
    }

    /// Refuses a request as a whole, before its message counts.
    pub(super) fn plain(status: StatusCode, message: &str) -> Refusal {
        let error = json!({"code": -32_600, "message": message});
        Refusal::json(status, json!({"jsonrpc": "2.0", "id": null, "error": error}))
    }

    pub(super) fn method(allowed: &'static str) -> Refusal {
        let message = format!("only {allowed} are allowed here");
        let refusal = Refusal::plain(StatusCode::METHOD_NOT_ALLOWED, &message);
        Refusal { header: Some(("allow", allowed)), ..refusal }
    }

    pub(super) fn no_session() -> Refusal {
        let message = "there is no such session; send initialize again";
        Refusal::plain(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn needs_session() -> Refusal {
        Refusal::plain(StatusCode::BAD_REQUEST, "there is no Mcp-Session-Id header")
    }

    pub(super) fn busy(message: &str) -> Refusal {
        let refusal = Refusal::plain(StatusCode::SERVICE_UNAVAILABLE, message);
        Refusal { header: Some(("retry-after", "30")), ..refusal }
    }

    pub(super) fn internal() -> Refusal {
        let message = "the request failed with an internal error of codexec";
        Refusal::plain(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    pub(super) fn into_response(self) -> Response<HttpBody> {
        let mut response = json_response(self.status, &self.body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

pub(super) fn json_response(status: StatusCode, body: &Value) -> Response<HttpBody> {
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Answers without a body.
pub(super) fn empty(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = status;
    response
}
