//! The arguments of `code_execution`, and how they narrow what the settings allow.

use std::time::Duration;

use codexec_server::{FieldError, Fields};
use codexec_types::{Json, Language, Policy, RequestedLimits};
use serde_json::{Map, Value, json};

use super::refusal::CodeRefusal;
use crate::ProxySettings;

const MAX_TIMEOUT_MS: u64 = 600_000;
const LANGUAGES: [Language; 2] = [Language::JavaScript, Language::TypeScript];

pub(super) struct CodeExecutionArguments {
    pub(super) source: CodeSource,
    pub(super) language: Option<Language>,
    pub(super) input: Json,
    pub(super) asked: RequestedLimits,
}

#[derive(Debug, PartialEq)]
pub(super) enum CodeSource {
    Code(String),
    Script(String),
}

impl CodeExecutionArguments {
    pub(super) fn read(
        args: Map<String, Value>,
        settings: &ProxySettings,
        policy: &Policy,
    ) -> Result<CodeExecutionArguments, CodeRefusal> {
        let mut fields = Fields::new(args);
        let (code, script) = (fields.text("code")?, fields.text("script")?);
        let language = parse_language(fields.text("language")?)?;
        let input = read_object("input", fields.take("input"))?;
        let options = read_object("options", fields.take("options"))?;
        fields.finish()?;
        let source = match (code, script) {
            (Some(code), None) => CodeSource::Code(code),
            (None, Some(script)) => CodeSource::Script(script),
            (Some(_), Some(_)) => {
                return Err(CodeRefusal::invalid("code, script: both are given; give one"));
            }
            (None, None) => {
                let message = "code: it is missing; it must be a string (or give `script`, the \
                               name of a stored one)";
                return Err(CodeRefusal::invalid(message));
            }
        };
        let asked = read_options(options, settings, policy)
            .map_err(|error| CodeRefusal::invalid(format!("options.{error}")))?;
        Ok(CodeExecutionArguments {
            source,
            language,
            input: Json::from_value(&json!(input)),
            asked,
        })
    }
}

/// Reads the options. A value above the policy's limit is capped: a request can only narrow limits.
fn read_options(
    options: Map<String, Value>,
    settings: &ProxySettings,
    policy: &Policy,
) -> Result<RequestedLimits, FieldError> {
    let mut fields = Fields::new(options);
    let timeout = fields.number("timeout_ms", 1..=MAX_TIMEOUT_MS)?.map(Duration::from_millis);
    let calls = fields.number("max_tool_calls", 0..=u64::from(u32::MAX))?;
    let servers = fields.texts("allowed_servers")?;
    fields.finish()?;
    let calls = calls.and_then(|calls| u32::try_from(calls).ok());
    // 0 means no limit of its own. A request's 0 also overrides the settings' limit.
    let calls = calls.or(settings.max_tool_calls).filter(|calls| *calls > 0);
    Ok(RequestedLimits {
        wall: Some(timeout.unwrap_or(settings.timeout).min(policy.max_wall)),
        tool_calls: calls.map(|calls| calls.min(policy.limits.tool_calls)),
        allowed_tools: None,
        // To MCPProxy's clients an empty list, which they send by default, means all servers.
        allowed_servers: servers.filter(|servers| !servers.is_empty()),
    })
}

fn parse_language(name: Option<String>) -> Result<Option<Language>, CodeRefusal> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(None) };
    let found = LANGUAGES.into_iter().find(|language| language.name() == name);
    found.map(Some).ok_or_else(|| CodeRefusal::no_language(&name))
}

fn read_object(field: &str, value: Option<Value>) -> Result<Map<String, Value>, CodeRefusal> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object),
        Some(other) => {
            let shown: String = other.to_string().chars().take(60).collect();
            let message = format!("{field}: {shown} is not allowed; it must be an object");
            Err(CodeRefusal::invalid(message))
        }
    }
}

#[cfg(test)]
mod tests;
