//! Errors of routes, with the right status.

use codexec_server::mcp::HttpBody;
use codexec_server::own::OwnFunctionError;
use codexec_server::{ExecuteError, FieldError};
use codexec_store::StoreError;
use codexec_types::CallError;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::error::{HttpError, json_response};
use crate::tokens::TokenError;

/// The reason why a route gives no result.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// The request was refused before it reached the route.
    Edge(HttpError),
    Route {
        status: StatusCode,
        code: String,
        message: String,
    },
}

/// How long a client waits before it sends a request again that could not be served now.
const RETRY_S: u64 = 5;

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> ApiError {
        ApiError::Route { status, code: code.to_owned(), message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "INVALID_ARGS", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    pub(crate) fn conflict(code: &str, message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, code, message)
    }

    /// A task of ours has panicked.
    pub(crate) fn internal() -> ApiError {
        let message = "the request failed with an internal error of codexec";
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", message)
    }

    /// Creates the error with the status that belongs to a code.
    ///
    /// THREAT[HTTP-11]: an error of the server itself goes to the log; its client gets a sentence.
    pub(crate) fn from_code(code: &str, message: &str) -> ApiError {
        let status = status_of(code);
        if !status.is_server_error() || code == "BUSY" {
            return ApiError::new(status, code, message);
        }
        tracing::warn!(code, message, "a request over HTTP failed");
        let message = match status {
            StatusCode::SERVICE_UNAVAILABLE => "codexec cannot do this now; try again later",
            _ => return ApiError::internal(),
        };
        ApiError::new(status, code, message)
    }

    /// Returns code and message, as in the body of a response.
    pub(crate) fn body(&self) -> Value {
        match self {
            ApiError::Edge(error) => error.body(),
            ApiError::Route { code, message, .. } => json!({"code": code, "message": message}),
        }
    }

    pub(crate) fn into_response(self) -> Response<HttpBody> {
        let body = self.body();
        match self {
            ApiError::Edge(error) => error.into_response(),
            ApiError::Route { status, .. } => {
                let mut response = json_response(status, &body);
                let retries = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
                if retries.contains(&status) {
                    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_S));
                }
                response
            }
        }
    }
}

/// Returns the status that belongs to a code of an own function or a tool call.
fn status_of(code: &str) -> StatusCode {
    match code {
        "INVALID_ARGS"
        | "INVALID_LANGUAGE"
        | "INVALID_SCRIPT_NAME"
        | "INVALID_SCRIPT"
        | "INVALID_INPUT"
        | "TOO_DEEP"
        | "WORKING_DIR_NOT_FOUND"
        | "WORKING_DIR_UNAVAILABLE" => StatusCode::BAD_REQUEST,
        "TOOL_NOT_ALLOWED"
        | "SERVER_NOT_ALLOWED"
        | "WORKING_DIR_NOT_ALLOWED"
        | "PACKAGE_DENIED"
        | "INDEX_HOST_REFUSED" => StatusCode::FORBIDDEN,
        "EXECUTION_NOT_FOUND"
        | "SESSION_NOT_FOUND"
        | "SCRIPT_NOT_FOUND"
        | "SCRIPT_VERSION_NOT_FOUND"
        | "PACKAGE_NOT_FOUND"
        | "TOOL_NOT_FOUND" => StatusCode::NOT_FOUND,
        "SESSION_ENDED"
        | "SESSION_BUSY"
        | "TOO_MANY_SESSIONS"
        | "SCRIPT_NAME_TAKEN"
        | "SCRIPT_EXISTS"
        | "SCRIPT_LIBRARY_FULL"
        | "SCRIPT_UNUSABLE"
        | "TOOL_QUARANTINED"
        | "MISSING_PACKAGES"
        | "KEPT_LIMIT"
        | "RESTORE_FAILED"
        | "CANCELLED"
        | "INSTALL_CANCELLED" => StatusCode::CONFLICT,
        // Something outside of codexec failed: a server, a package index, an interpreter.
        "UPSTREAM_ERROR"
        | "PACKAGE_UNKNOWN"
        | "PACKAGE_VERSION_UNKNOWN"
        | "PACKAGE_NEEDS_BUILD"
        | "PACKAGE_TOO_BIG"
        | "INDEX_UNREACHABLE"
        | "INSTALL_TIMEOUT"
        | "INSTALL_MEMORY"
        | "INSTALL_FAILED"
        | "INSTALLER_UNAVAILABLE"
        | "INTERPRETER_UNAVAILABLE" => StatusCode::FAILED_DEPENDENCY,
        "RATE_LIMITED" => StatusCode::TOO_MANY_REQUESTS,
        "BUSY"
        | "CIRCUIT_OPEN"
        | "SERVICE_UNAVAILABLE"
        | "INSTALL_BUSY"
        | "SCRIPT_LIBRARY_BUSY"
        | "SCRIPT_LIBRARY_UNAVAILABLE"
        | "STORE_UNAVAILABLE"
        | "SANDBOX_UNAVAILABLE"
        | "WORKER_START"
        | "PACKAGES_SETTINGS"
        | "PACKAGES_UNWRITABLE" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<HttpError> for ApiError {
    fn from(error: HttpError) -> ApiError {
        ApiError::Edge(error)
    }
}

impl From<FieldError> for ApiError {
    fn from(error: FieldError) -> ApiError {
        ApiError::invalid(error.to_string())
    }
}

impl From<OwnFunctionError> for ApiError {
    fn from(error: OwnFunctionError) -> ApiError {
        ApiError::from_code(error.code(), error.message())
    }
}

impl From<ExecuteError> for ApiError {
    fn from(error: ExecuteError) -> ApiError {
        OwnFunctionError::from(error).into()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> ApiError {
        OwnFunctionError::from(error).into()
    }
}

/// The message may name what a server said; its codes are those of `codexec-types`.
impl From<CallError> for ApiError {
    fn from(error: CallError) -> ApiError {
        let code = serde_json::to_value(error.code).unwrap_or_default();
        let code = code.as_str().unwrap_or("UPSTREAM_ERROR");
        ApiError::new(status_of(code), code, error.message)
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> ApiError {
        match &error {
            TokenError::Name(_) | TokenError::Scope(_) => ApiError::invalid(error.to_string()),
            TokenError::Taken(_) => ApiError::conflict("TOKEN_EXISTS", error.to_string()),
            TokenError::Unknown(_) => ApiError::not_found(error.to_string()),
            TokenError::First(_) => {
                let message = "the first token cannot be revoked here; delete its file";
                ApiError::conflict("FIRST_TOKEN", message)
            }
            TokenError::TooMany => ApiError::conflict("TOO_MANY_TOKENS", error.to_string()),
            TokenError::File(..)
            | TokenError::Io(..)
            | TokenError::Exposed(_)
            | TokenError::Malformed(_)
            | TokenError::NoRandomness => {
                ApiError::from_code("STORE_UNAVAILABLE", &error.to_string())
            }
        }
    }
}
