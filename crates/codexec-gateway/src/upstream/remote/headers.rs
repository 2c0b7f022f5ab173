//! HTTP headers that 2026-07-28 requires, so that intermediaries can route a request without
//! parsing its body.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::mirrored_arguments::MirroredArgument;

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Returns the protocol version that a request declares, from 2026-07-28 on.
pub(super) fn protocol_version(message: &Value) -> Option<&str> {
    message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion")?.as_str()
}

/// Builds the headers of a message. `mirrored` are the arguments that the called tool wants in
/// headers.
pub(super) fn build_headers(
    message: &Value,
    version: &str,
    mirrored: &[MirroredArgument],
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let mut put = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    put(VERSION, version);
    let Some(method) = message.get("method").and_then(Value::as_str) else { return headers };
    put(METHOD, method);
    let params = message.get("params");
    let named = name_field(method).and_then(|key| params?.get(key)?.as_str());
    if let Some(named) = named {
        put(NAME, &encode_value(named));
    }
    let arguments = params.and_then(|params| params.get("arguments"));
    for header in mirrored {
        let argument = arguments.and_then(|arguments| header.argument(arguments));
        if let Some(value) = argument.and_then(header_text) {
            put(header.name.clone(), &encode_value(&value));
        }
    }
    headers
}

/// Repeats the span that a request belongs to, for servers that read it from the header.
pub(super) fn add_trace_header(headers: &mut HeaderMap, message: &Value) {
    let trace = message.pointer("/params/_meta/traceparent").and_then(Value::as_str);
    if let Some(value) = trace.and_then(|trace| HeaderValue::from_str(trace).ok()) {
        headers.insert(TRACE_PARENT, value);
    }
}

fn name_field(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

fn header_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the value, or its Base64 form if a header cannot carry it unchanged.
fn encode_value(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && value.trim_matches(' ').len() == value.len()
        && !(value.starts_with("=?base64?") && value.ends_with("?="));
    if is_plain {
        value.to_owned()
    } else {
        format!("=?base64?{}?=", BASE64_STANDARD.encode(value))
    }
}

#[cfg(test)]
mod tests;
