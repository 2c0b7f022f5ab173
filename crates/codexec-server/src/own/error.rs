use std::fmt::Write as _;

use codexec_exec::packages::PackageError;
use codexec_functions::OwnFunction;
use codexec_scripts::ScriptError;
use codexec_store::StoreError;
use codexec_types::{CallCode, Grant, find_nearest_names};
use serde_json::{Map, Value, json};

use crate::fields::FieldError;
use crate::{ExecuteError, SessionError, SnapshotError};

/// The detail that says after how many seconds to try again.
const RETRY_AFTER: &str = "retry_after_s";

/// The error of an own function: a stable code, a message that says what to do, and details for
/// programs.
#[derive(Debug)]
pub struct OwnFunctionError {
    code: &'static str,
    message: String,
    details: Map<String, Value>,
}

impl OwnFunctionError {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> OwnFunctionError {
        OwnFunctionError { code, message: message.into(), details: Map::new() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> OwnFunctionError {
        OwnFunctionError::new("INVALID_ARGS", message)
    }

    /// Creates the error for code that lacks a grant.
    pub(super) fn needs_grant(grant: Grant, what: &str) -> OwnFunctionError {
        OwnFunctionError::new(
            "TOOL_NOT_ALLOWED",
            format!("{what}; {}", grant.describe_how_to_grant()),
        )
    }

    pub(crate) fn unknown(name: &str) -> OwnFunctionError {
        let name: String = name.chars().take(80).collect();
        let all = OwnFunction::ALL.iter().map(|function| function.name());
        let near = find_nearest_names(&name, all, 3).join(", ");
        OwnFunctionError::new(
            "TOOL_NOT_FOUND",
            format!("there is no function {name:?}; the nearest: {near}"),
        )
    }

    #[must_use]
    pub(super) fn with(mut self, field: &str, value: Value) -> OwnFunctionError {
        self.details.insert(field.to_owned(), value);
        self
    }

    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the message without the code.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns after how many seconds the same request may succeed, if waiting helps.
    pub fn retry_after_s(&self) -> Option<u64> {
        self.details.get(RETRY_AFTER).and_then(Value::as_u64)
    }

    /// Formats the error as in the toolset `codexec`.
    pub fn value(&self) -> Value {
        let mut value = json!({
            "success": false,
            "error": self.message,
            "error_code": self.code,
        });
        if let Some(fields) = value.as_object_mut() {
            fields.extend(self.details.clone());
        }
        value
    }

    /// Returns the code that the guest gets.
    pub(crate) fn call_code(&self) -> CallCode {
        match self.code {
            "TOOL_NOT_FOUND" => CallCode::ToolNotFound,
            "TOOL_NOT_ALLOWED" => CallCode::ToolNotAllowed,
            "INVALID_ARGS" | "INVALID_LANGUAGE" => CallCode::InvalidArgs,
            _ => CallCode::UpstreamError,
        }
    }
}

impl std::fmt::Display for OwnFunctionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl From<FieldError> for OwnFunctionError {
    fn from(error: FieldError) -> OwnFunctionError {
        OwnFunctionError::invalid(error.to_string())
    }
}

impl From<ExecuteError> for OwnFunctionError {
    fn from(error: ExecuteError) -> OwnFunctionError {
        let own = OwnFunctionError::new(error.code(), with_causes(&error));
        match error.retry_after() {
            Some(wait) => own.with(RETRY_AFTER, wait.as_secs().max(1).into()),
            None => own,
        }
    }
}

impl From<SessionError> for OwnFunctionError {
    fn from(error: SessionError) -> OwnFunctionError {
        OwnFunctionError::new(error.code(), error.to_string())
    }
}

impl From<SnapshotError> for OwnFunctionError {
    fn from(error: SnapshotError) -> OwnFunctionError {
        let code = match error {
            SnapshotError::NotOwn(_) | SnapshotError::Taken(_) => "TOOL_NOT_ALLOWED",
            _ => "INVALID_ARGS",
        };
        OwnFunctionError::new(code, error.to_string())
    }
}

impl From<StoreError> for OwnFunctionError {
    fn from(error: StoreError) -> OwnFunctionError {
        OwnFunctionError::new("STORE_UNAVAILABLE", with_causes(&error))
    }
}

impl From<PackageError> for OwnFunctionError {
    fn from(error: PackageError) -> OwnFunctionError {
        OwnFunctionError::new(error.code(), with_causes(&error))
    }
}

impl From<ScriptError> for OwnFunctionError {
    fn from(error: ScriptError) -> OwnFunctionError {
        OwnFunctionError::new(error.code(), with_causes(&error))
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let _ = write!(text, ": {source}");
        cause = source.source();
    }
    text
}
