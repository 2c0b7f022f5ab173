use codexec_scripts::ScriptError;
use codexec_types::Language;

use super::NamedScript;
use crate::ExecuteError;
use crate::fields::FieldError;
use crate::own::OwnError;

/// The reason why nothing was run: a code that MCPProxy's clients know, and a message that says
/// what to do.
#[derive(Debug, PartialEq)]
pub(super) struct Refused {
    pub(super) code: &'static str,
    pub(super) message: String,
}

/// Maximum number of names that an error lists.
const SHOWN: usize = 20;

impl Refused {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Refused {
        Refused { code, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Refused {
        Refused::new("INVALID_ARGS", message)
    }

    pub(super) fn unusable(message: impl Into<String>) -> Refused {
        Refused::new("SCRIPT_UNUSABLE", message)
    }

    pub(super) fn disabled() -> Refused {
        Refused::new(
            "FEATURE_DISABLED",
            "code execution is switched off; set \"enable_code_execution\": true in \
             mcp_config.json and restart",
        )
    }

    pub(super) fn no_language(name: &str) -> Refused {
        let name: String = name.chars().take(60).collect();
        Refused::new(
            "INVALID_LANGUAGE",
            format!("language: {name:?} is not supported; it must be javascript or typescript"),
        )
    }

    pub(super) fn other_language(name: &str, its: Language, asked: Language) -> Refused {
        Refused::new(
            "INVALID_LANGUAGE",
            format!("language: script {name:?} is {its}, not {asked}; leave `language` out"),
        )
    }

    pub(super) fn no_script(name: &str, all: &[NamedScript]) -> Refused {
        let mut names: Vec<&str> = all.iter().map(|script| &*script.name).collect();
        names.dedup();
        let total = names.len();
        names.truncate(SHOWN);
        let known = match names.join(", ") {
            names if names.is_empty() => "none is stored".to_owned(),
            names if total > SHOWN => format!("the first {SHOWN} of {total}: {names}"),
            names => format!("there are: {names}"),
        };
        Refused::new("SCRIPT_NOT_FOUND", format!("script: there is no {name:?}; {known}"))
    }

    pub(super) fn script(error: &ScriptError) -> Refused {
        Refused::by(error.code(), error.to_string())
    }

    /// Maps codes that MCPProxy does not have to `EXECUTION_FAILED`, with the code in the message.
    fn by(code: &'static str, message: String) -> Refused {
        match code {
            "INVALID_ARGS"
            | "INVALID_LANGUAGE"
            | "SCRIPT_NOT_FOUND"
            | "INVALID_SCRIPT_NAME"
            | "SCRIPT_UNUSABLE" => Refused::new(code, message),
            "INVALID_INPUT" => Refused::invalid(message),
            other => Refused::new("EXECUTION_FAILED", format!("{other}: {message}")),
        }
    }
}

impl From<FieldError> for Refused {
    fn from(error: FieldError) -> Refused {
        Refused::invalid(error.to_string())
    }
}

impl From<ExecuteError> for Refused {
    fn from(error: ExecuteError) -> Refused {
        OwnError::from(error).into()
    }
}

impl From<OwnError> for Refused {
    fn from(error: OwnError) -> Refused {
        Refused::by(error.code(), error.message().to_owned())
    }
}
