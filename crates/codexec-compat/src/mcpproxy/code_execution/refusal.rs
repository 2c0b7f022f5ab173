use codexec_scripts::ScriptError;
use codexec_server::own::OwnFunctionError;
use codexec_server::{ExecuteError, FieldError};
use codexec_types::Language;

use super::NamedScript;

/// The reason why nothing was run: a code that MCPProxy's clients know, and a message that says
/// what to do.
#[derive(Debug, PartialEq)]
pub(super) struct CodeRefusal {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// Maximum number of names that an error lists.
const MAX_LISTED: usize = 20;

impl CodeRefusal {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> CodeRefusal {
        CodeRefusal { code, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> CodeRefusal {
        CodeRefusal::new("INVALID_ARGS", message)
    }

    pub(super) fn unusable(message: impl Into<String>) -> CodeRefusal {
        CodeRefusal::new("SCRIPT_UNUSABLE", message)
    }

    pub(super) fn disabled() -> CodeRefusal {
        CodeRefusal::new(
            "FEATURE_DISABLED",
            "code execution is switched off; set \"enable_code_execution\": true in \
             mcp_config.json and restart",
        )
    }

    pub(super) fn no_language(name: &str) -> CodeRefusal {
        let name: String = name.chars().take(60).collect();
        CodeRefusal::new(
            "INVALID_LANGUAGE",
            format!("language: {name:?} is not supported; it must be javascript or typescript"),
        )
    }

    pub(super) fn other_language(name: &str, its: Language, asked: Language) -> CodeRefusal {
        CodeRefusal::new(
            "INVALID_LANGUAGE",
            format!("language: script {name:?} is {its}, not {asked}; leave `language` out"),
        )
    }

    pub(super) fn no_script(name: &str, all: &[NamedScript]) -> CodeRefusal {
        let mut names: Vec<&str> = all.iter().map(|script| &*script.name).collect();
        names.dedup();
        let total = names.len();
        names.truncate(MAX_LISTED);
        let known = match names.join(", ") {
            names if names.is_empty() => "none is stored".to_owned(),
            names if total > MAX_LISTED => format!("the first {MAX_LISTED} of {total}: {names}"),
            names => format!("there are: {names}"),
        };
        CodeRefusal::new("SCRIPT_NOT_FOUND", format!("script: there is no {name:?}; {known}"))
    }

    pub(super) fn script(error: &ScriptError) -> CodeRefusal {
        CodeRefusal::from_code(error.code(), error.to_string())
    }

    /// Maps codes that MCPProxy does not have to `EXECUTION_FAILED`, with the code in the message.
    fn from_code(code: &'static str, message: String) -> CodeRefusal {
        match code {
            "INVALID_ARGS"
            | "INVALID_LANGUAGE"
            | "SCRIPT_NOT_FOUND"
            | "INVALID_SCRIPT_NAME"
            | "SCRIPT_UNUSABLE" => CodeRefusal::new(code, message),
            "INVALID_INPUT" => CodeRefusal::invalid(message),
            other => CodeRefusal::new("EXECUTION_FAILED", format!("{other}: {message}")),
        }
    }
}

impl From<FieldError> for CodeRefusal {
    fn from(error: FieldError) -> CodeRefusal {
        CodeRefusal::invalid(error.to_string())
    }
}

impl From<ExecuteError> for CodeRefusal {
    fn from(error: ExecuteError) -> CodeRefusal {
        OwnFunctionError::from(error).into()
    }
}

impl From<OwnFunctionError> for CodeRefusal {
    fn from(error: OwnFunctionError) -> CodeRefusal {
        CodeRefusal::from_code(error.code(), error.message().to_owned())
    }
}
