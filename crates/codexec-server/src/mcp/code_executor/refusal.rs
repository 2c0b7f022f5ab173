use std::fmt::Write as _;

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

use crate::fields::FieldError;
use crate::{DirError, ExecuteError};

/// The reason why nothing was run, in this toolset's format.
#[derive(Debug)]
pub(super) struct Refusal {
    error: String,
    kind: Kind,
    suggestion: Option<&'static str>,
}

/// The `errorType` of a refusal.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The arguments are invalid.
    Validation,
    /// The arguments are valid, but not allowed.
    Security,
    /// codexec could not run the code.
    Execution,
}

impl Refusal {
    pub(super) fn validation(error: impl Into<String>) -> Refusal {
        Refusal { error: error.into(), kind: Kind::Validation, suggestion: None }
    }

    pub(super) fn security(error: impl Into<String>) -> Refusal {
        Refusal { error: error.into(), kind: Kind::Security, suggestion: None }
    }

    #[must_use]
    pub(super) fn suggesting(mut self, suggestion: &'static str) -> Refusal {
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

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Validation => "validation",
            Kind::Security => "security",
            Kind::Execution => "execution",
        }
    }
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Refusal {
        Refusal::validation(error.to_string())
    }
}

impl From<ExecuteError> for Refusal {
    fn from(error: ExecuteError) -> Refusal {
        let kind = match &error {
            ExecuteError::Refused(codexec_types::Refusal::WorkingDir { .. })
            | ExecuteError::WorkingDir(DirError::Refused(_)) => Kind::Security,
            ExecuteError::Refused(_) | ExecuteError::WorkingDir(_) => Kind::Validation,
            ExecuteError::Exec(_)
            | ExecuteError::Store(_)
            | ExecuteError::Session(_)
            | ExecuteError::TooDeep
            | ExecuteError::NoRandomness => Kind::Execution,
        };
        let mut text = theirs(&error.to_string());
        let mut cause = std::error::Error::source(&error);
        while let Some(source) = cause {
            let _ = write!(text, ": {source}");
            cause = source.source();
        }
        Refusal { error: text, kind, suggestion: None }
    }
}

/// Replaces the field's name in a message by the name that this toolset uses.
fn theirs(sentence: &str) -> String {
    let names = [("timeout_ms:", "timeoutMs:"), ("allowed_tools:", "allowedTools:")];
    names
        .iter()
        .find_map(|(ours, theirs)| Some(format!("{theirs}{}", sentence.strip_prefix(ours)?)))
        .unwrap_or_else(|| sentence.to_owned())
}
