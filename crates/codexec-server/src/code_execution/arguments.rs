//! The arguments of `code_execution`, and how they narrow what the settings allow.

use std::time::Duration;

use codexec_types::{Asked, Json, Language, Policy};
use serde_json::{Map, Value, json};

use super::refused::Refused;
use crate::ProxySettings;
use crate::fields::{FieldError, Fields};

const MAX_TIMEOUT_MS: u64 = 600_000;
const LANGUAGES: [Language; 2] = [Language::JavaScript, Language::TypeScript];

pub(super) struct Arguments {
    pub(super) source: Source,
    pub(super) language: Option<Language>,
    pub(super) input: Json,
    pub(super) asked: Asked,
}

#[derive(Debug, PartialEq)]
pub(super) enum Source {
    Code(String),
    Script(String),
}

impl Arguments {
    pub(super) fn read(
        args: Map<String, Value>,
        settings: &ProxySettings,
        policy: &Policy,
    ) -> Result<Arguments, Refused> {
        let mut fields = Fields::new(args);
        let (code, script) = (fields.text("code")?, fields.text("script")?);
        let language = language(fields.text("language")?)?;
        let input = object("input", fields.take("input"))?;
        let options = object("options", fields.take("options"))?;
        fields.finish()?;
        let source = match (code, script) {
            (Some(code), None) => Source::Code(code),
            (None, Some(script)) => Source::Script(script),
            (Some(_), Some(_)) => {
                return Err(Refused::invalid("code, script: both are given; give one"));
            }
            (None, None) => {
                let message = "code: it is missing; it must be a string (or give `script`, the \
                               name of a stored one)";
                return Err(Refused::invalid(message));
            }
        };
        let asked = asked(options, settings, policy)
            .map_err(|error| Refused::invalid(format!("options.{error}")))?;
        Ok(Arguments { source, language, input: Json::from_value(&json!(input)), asked })
    }
}

/// Reads the options. A value above the policy's limit is capped: a request can only narrow limits.
fn asked(
    options: Map<String, Value>,
    settings: &ProxySettings,
    policy: &Policy,
) -> Result<Asked, FieldError> {
    let mut fields = Fields::new(options);
    let timeout = fields.number("timeout_ms", 1..=MAX_TIMEOUT_MS)?.map(Duration::from_millis);
    let calls = fields.number("max_tool_calls", 0..=u64::from(u32::MAX))?;
    let servers = fields.texts("allowed_servers")?;
    fields.finish()?;
    let calls = calls.and_then(|calls| u32::try_from(calls).ok());
    // 0 means no limit of its own. A request's 0 also overrides the settings' limit.
    let calls = calls.or(settings.max_tool_calls).filter(|calls| *calls > 0);
    Ok(Asked {
        wall: Some(timeout.unwrap_or(settings.timeout).min(policy.max_wall)),
        tool_calls: calls.map(|calls| calls.min(policy.limits.tool_calls)),
        allowed_tools: None,
        // To MCPProxy's clients an empty list, which they send by default, means all servers.
        allowed_servers: servers.filter(|servers| !servers.is_empty()),
    })
}

fn language(name: Option<String>) -> Result<Option<Language>, Refused> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let found = LANGUAGES.into_iter().find(|language| language.name() == name);
    found.map(Some).ok_or_else(|| Refused::no_language(&name))
}

fn object(field: &str, value: Option<Value>) -> Result<Map<String, Value>, Refused> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object),
        Some(other) => {
            let shown: String = other.to_string().chars().take(60).collect();
            let message = format!("{field}: {shown} is not allowed; it must be an object");
            Err(Refused::invalid(message))
        }
    }
}

#[cfg(test)]
mod tests;
