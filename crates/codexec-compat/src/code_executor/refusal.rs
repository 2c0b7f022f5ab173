use std::fmt::Write as _;

use codexec_server::{DirError, ExecuteError, FieldError};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

/// The reason why nothing was run, in this toolset's format.
#[derive(Debug)]
pub(super) struct ExecutorRefusal {
    error: String,
    kind: RefusalKind,
    suggestion: Option<&'static str>,
}

/// The `errorType` of a refusal.
#[derive(Clone, Copy, Debug)]
pub(super) enum RefusalKind {
    /// The arguments are invalid.
    Validation,
    /// The arguments are valid, but not allowed.
    Security,
    /// codexec could not run the code.
    Execution,
}

impl ExecutorRefusal {
    pub(super) fn validation(error: impl Into<String>) -> ExecutorRefusal {
        ExecutorRefusal { error: error.into(), kind: RefusalKind::Validation, suggestion: None }
    }

    pub(super) fn security(error: impl Into<String>) -> ExecutorRefusal {
        ExecutorRefusal { error: error.into(), kind: RefusalKind::Security, suggestion: None }
    }

    #[must_use]
    pub(super) fn suggesting(mut self, suggestion: &'static str) -> ExecutorRefusal {
        self.suggestion = Some(suggestion);
        self
    }

    /// Returns text only: the output schema holds for executions, and nothing was run.
    pub(super) fn result(&self) -> CallToolResult {
        tracing::debug!(error = self.error, "refused");
        let mut value = json!({"error": self.error, "errorType": self.kind.name()});
        if let (Some(suggestion), Some(fields)) = (self.suggestion, value.as_object_mut()) {
            fields.insert("suggestion".to_owned(), suggestion.into());
        }
        CallToolResult::error(vec![ContentBlock::text(value.to_string())])
    }
}

impl RefusalKind {
    fn name(self) -> &'static str {
        match self {
            RefusalKind::Validation => "validation",
            RefusalKind::Security => "security",
            RefusalKind::Execution => "execution",
        }
    }
}

impl From<FieldError> for ExecutorRefusal {
    fn from(error: FieldError) -> ExecutorRefusal {
        ExecutorRefusal::validation(error.to_string())
    }
}

impl From<ExecuteError> for ExecutorRefusal {
    fn from(error: ExecuteError) -> ExecutorRefusal {
        let kind = match &error {
            ExecuteError::Refused(codexec_types::PolicyRefusal::WorkingDir { .. })
            | ExecuteError::WorkingDir(DirError::Refused(_)) => RefusalKind::Security,
            ExecuteError::Refused(_) | ExecuteError::WorkingDir(_) => RefusalKind::Validation,
            ExecuteError::Exec(_)
            | ExecuteError::Store(_)
            | ExecuteError::Session(_)
            | ExecuteError::TooDeep
            | ExecuteError::NoRandomness => RefusalKind::Execution,
        };
        let mut text = with_client_field_names(&error.to_string());
        let mut cause = std::error::Error::source(&error);
        while let Some(source) = cause {
            let _ = write!(text, ": {source}");
            cause = source.source();
        }
        ExecutorRefusal { error: text, kind, suggestion: None }
    }
}

/// Replaces the field's name in a message by the name that this toolset uses.
fn with_client_field_names(sentence: &str) -> String {
    let names = [("timeout_ms:", "timeoutMs:"), ("allowed_tools:", "allowedTools:")];
    names
        .iter()
        .find_map(|(own_name, client_name)| {
            Some(format!("{client_name}{}", sentence.strip_prefix(own_name)?))
        })
        .unwrap_or_else(|| sentence.to_owned())
}
