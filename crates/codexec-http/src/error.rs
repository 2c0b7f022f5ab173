//! Errors as clients see them: `{code, message}`.

use bytes::Bytes;
use codexec_server::mcp::HttpBody;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

/// The reason why a request is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("the request has too many headers, or too long ones")]
    Headers,
    #[error("Mcp-Session-Id is malformed")]
    SessionId,
    #[error("Host names another server; `http.hosts` in config.toml lists further names")]
    Host,
    #[error("requests from web pages of other sites are not answered")]
    Origin,
    #[error("send a token as `Authorization: Bearer TOKEN`; `codexec token create` makes one")]
    NoToken,
    #[error("the token does not allow this; its scopes do not include {0}")]
    Scope(String),
    #[error("the token has sent too many requests; wait {retry_s} seconds")]
    RateLimit { retry_s: u64 },
    #[error("there are too many connections from this address; close some")]
    Connections,
    #[error("the server is stopping")]
    Stopping,
    #[error("Content-Type must be application/json")]
    ContentType,
    #[error("the body has more than {0} bytes")]
    TooLong(usize),
    #[error("the body did not arrive in time")]
    SlowBody,
    #[error("the body could not be read")]
    Body,
    #[error("the body is not JSON in UTF-8, or nested too deeply")]
    Json,
    #[error("the query is malformed, or has unknown parameters")]
    Query,
    #[error("there is nothing at this path")]
    NotFound,
    #[error("only {0} is allowed here")]
    Method(String),
}

impl HttpError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            HttpError::Headers => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            HttpError::SessionId | HttpError::Body | HttpError::Json | HttpError::Query => {
                StatusCode::BAD_REQUEST
            }
            HttpError::Host | HttpError::Origin | HttpError::Scope(_) => StatusCode::FORBIDDEN,
            HttpError::NoToken => StatusCode::UNAUTHORIZED,
            HttpError::RateLimit { .. } => StatusCode::TOO_MANY_REQUESTS,
            HttpError::Connections | HttpError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            HttpError::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            HttpError::TooLong(_) => StatusCode::PAYLOAD_TOO_LARGE,
            HttpError::SlowBody => StatusCode::REQUEST_TIMEOUT,
            HttpError::NotFound => StatusCode::NOT_FOUND,
            HttpError::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// Returns a stable code for clients.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            HttpError::Headers => "HEADERS_TOO_LARGE",
            HttpError::SessionId | HttpError::Body | HttpError::Json | HttpError::Query => {
                "INVALID_REQUEST"
            }
            HttpError::Host => "HOST_NOT_ALLOWED",
            HttpError::Origin => "ORIGIN_NOT_ALLOWED",
            HttpError::NoToken => "UNAUTHORIZED",
            HttpError::Scope(_) => "SCOPE_MISSING",
            HttpError::RateLimit { .. } => "RATE_LIMITED",
            HttpError::Connections => "TOO_MANY_CONNECTIONS",
            HttpError::Stopping => "STOPPING",
            HttpError::ContentType => "UNSUPPORTED_MEDIA_TYPE",
            HttpError::TooLong(_) => "BODY_TOO_LARGE",
            HttpError::SlowBody => "BODY_TIMEOUT",
            HttpError::NotFound => "NOT_FOUND",
            HttpError::Method(_) => "METHOD_NOT_ALLOWED",
        }
    }

    fn retry_after_s(&self) -> Option<u64> {
        match self {
            HttpError::RateLimit { retry_s } => Some(*retry_s),
            HttpError::Connections | HttpError::Stopping => Some(1),
            _ => None,
        }
    }

    /// True if the rest of the connection cannot be trusted or is not wanted.
    fn closes(&self) -> bool {
        matches!(
            self,
            HttpError::TooLong(_)
                | HttpError::SlowBody
                | HttpError::Body
                | HttpError::Headers
                | HttpError::Connections
                | HttpError::Stopping
        )
    }

    pub(crate) fn body(&self) -> Value {
        json!({"code": self.code(), "message": self.to_string()})
    }

    pub(crate) fn into_response(self) -> Response<HttpBody> {
        let mut response = json_response(self.status(), &self.body());
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s() {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        match &self {
            HttpError::NoToken => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            HttpError::Method(allowed) => {
                if let Ok(allowed) = HeaderValue::from_str(allowed) {
                    headers.insert(ALLOW, allowed);
                }
            }
            _ => {}
        }
        if self.closes() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// Returns the whole response as text, for a client whose request is not even read.
    pub(crate) fn to_raw_response(&self) -> String {
        let body = self.body().to_string();
        let retry = self.retry_after_s().unwrap_or(1);
        format!(
            "HTTP/1.1 {}\r\ncontent-type: application/json\r\nretry-after: {retry}\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            self.status(),
            body.len(),
        )
    }
}

pub(crate) fn json_response(status: StatusCode, body: &Value) -> Response<HttpBody> {
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
