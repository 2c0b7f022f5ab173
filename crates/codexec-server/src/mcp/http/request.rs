//! What the headers and the message of a request say about each other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ProtocolVersion, ServerJsonRpcMessage,
};
use serde_json::{Value, json};

use super::{Refusal, SESSION_HEADER};

const TRACE_PARENT: &str = "traceparent";
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The first revision without sessions. ISO dates can be compared as strings.
const FIRST_MODERN: &str = "2026-07-28";
const HEADER_MISMATCH: i32 = -32_020;
const INVALID_PARAMS: i32 = -32_602;
const MAX_SESSION_ID: usize = 128;

/// The two ways in which MCP is spoken over HTTP.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// Up to 2025-11-25: a handshake opens a session.
    Sessions,
    /// From 2026-07-28 on: each request stands alone.
    SingleRequests,
}

/// Returns the era of a message. `is_handshake` is true for a complete `initialize`, which exists
/// only in the older era.
///
/// THREAT[HTTP-8]: intermediaries decide by the headers, so headers that contradict the message
/// are refused.
pub(super) fn classify(
    headers: &HeaderMap,
    raw: &Value,
    is_handshake: bool,
) -> Result<Era, Refusal> {
    let method = raw.get("method").and_then(Value::as_str);
    let header = single(headers, "mcp-protocol-version", raw)?;
    if is_handshake {
        let named = raw.pointer("/params/protocolVersion").and_then(Value::as_str);
        if header.is_some_and(|header| named != Some(header)) {
            let why = "the MCP-Protocol-Version header contradicts params.protocolVersion";
            return Err(Refusal::invalid(raw, why));
        }
        let named = single(headers, "mcp-method", raw)?;
        return match named.is_none_or(|named| named == "initialize") {
            true => Ok(Era::Sessions),
            false => Err(mismatch(raw, "the Mcp-Method header contradicts the method")),
        };
    }
    let meta = meta_version(raw);
    let is_modern = meta.is_some()
        || method == Some("server/discover")
        || header.is_some_and(|header| header >= FIRST_MODERN);
    if !is_modern {
        check_known_version(headers)?;
        return Ok(Era::Sessions);
    }
    if raw.get("id").is_some() && method.is_some() {
        let Some(meta) = meta else {
            let why = format!("params._meta has no valid {META_VERSION}");
            return Err(Refusal::rpc(raw, INVALID_PARAMS, &why));
        };
        if header != Some(meta) {
            let why = "the MCP-Protocol-Version header must be the version in params._meta";
            return Err(mismatch(raw, why));
        }
    }
    if header.is_some_and(|header| header >= FIRST_MODERN) {
        check_standard_headers(headers, raw, method)?;
    }
    Ok(Era::SingleRequests)
}

fn check_standard_headers(
    headers: &HeaderMap,
    raw: &Value,
    method: Option<&str>,
) -> Result<(), Refusal> {
    let Some(method) = method else { return Ok(()) };
    if single(headers, "mcp-method", raw)? != Some(method) {
        return Err(mismatch(raw, "the Mcp-Method header must be the method of the message"));
    }
    let field = match method {
        "tools/call" | "prompts/get" => "/params/name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "/params/uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "/params/taskId",
        _ => return Ok(()),
    };
    let Some(expected) = raw.pointer(field).and_then(Value::as_str) else { return Ok(()) };
    let named = single(headers, "mcp-name", raw)?.and_then(decode);
    match named.as_deref() == Some(expected) {
        true => Ok(()),
        false => Err(mismatch(raw, "the Mcp-Name header must be the name in the message")),
    }
}

/// Decodes a header value that may be written as `=?base64?..?=`.
fn decode(value: &str) -> Option<String> {
    let inner = value.strip_prefix("=?base64?").and_then(|inner| inner.strip_suffix("?="));
    match inner {
        Some(inner) => String::from_utf8(STANDARD.decode(inner).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

/// Returns the only value of a header; several or unreadable ones are refused.
fn single<'a>(headers: &'a HeaderMap, name: &str, raw: &Value) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(mismatch(raw, &format!("the header {name} is not ASCII"))),
        },
        (Some(_), Some(_)) => Err(mismatch(raw, &format!("the header {name} is there twice"))),
    }
}

fn mismatch(raw: &Value, why: &str) -> Refusal {
    Refusal::rpc(raw, HEADER_MISMATCH, why)
}

pub(super) fn check_known_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(version) = headers.get("mcp-protocol-version") else { return Ok(()) };
    let is_known = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .any(|known| version.as_bytes() == known.as_str().as_bytes());
    match is_known {
        true => Ok(()),
        false => {
            let why = "MCP-Protocol-Version names no revision that codexec knows";
            Err(Refusal::plain(StatusCode::BAD_REQUEST, why))
        }
    }
}

pub(super) fn is_modern_version(headers: &HeaderMap) -> bool {
    let version = headers.get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    version.is_some_and(|version| version >= FIRST_MODERN)
}

/// A client without the header takes everything.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    let takes_both = accepts(headers, "application/json") && accepts(headers, "text/event-stream");
    match !headers.contains_key(http::header::ACCEPT) || takes_both {
        true => Ok(()),
        false => Err(Refusal::plain(
            StatusCode::NOT_ACCEPTABLE,
            "Accept must name application/json and text/event-stream",
        )),
    }
}

pub(super) fn accepts(headers: &HeaderMap, mime: &str) -> bool {
    let values = headers.get_all(http::header::ACCEPT).iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|range| {
        let range = range.split(';').next().unwrap_or_default().trim();
        range == "*/*" || range.eq_ignore_ascii_case(mime)
    })
}

/// Returns the session that the request names. It may not exist.
///
/// THREAT[HTTP-7]: no session is made from an id that a client chose.
pub(super) fn session_id(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(id) = headers.get(SESSION_HEADER) else { return Ok(None) };
    match id.to_str() {
        Ok(id) if id.len() <= MAX_SESSION_ID => Ok(Some(id.to_owned())),
        _ => Err(Refusal::plain(StatusCode::BAD_REQUEST, "Mcp-Session-Id is malformed")),
    }
}

/// Parses a message. A request that names no span in its metadata belongs to the one that its
/// header names.
pub(super) fn parse_message(
    mut raw: Value,
    body: &[u8],
    headers: &HeaderMap,
) -> Result<(Value, ClientJsonRpcMessage), serde_json::Error> {
    let trace = headers.get(TRACE_PARENT).and_then(|value| value.to_str().ok());
    let is_call = raw.get("method").is_some_and(|method| method == "tools/call");
    let params = raw.get_mut("params").filter(|_| is_call).and_then(Value::as_object_mut);
    let (Some(trace), Some(params)) = (trace, params) else {
        return Ok((raw, serde_json::from_slice(body)?));
    };
    let meta = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut();
    if let Some(meta) = meta {
        meta.entry(TRACE_PARENT).or_insert_with(|| trace.into());
    }
    let message = serde_json::from_value(raw.clone())?;
    Ok((raw, message))
}

pub(super) fn is_initialize(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, ClientJsonRpcMessage::Request(request)
        if matches!(request.request, ClientRequest::InitializeRequest(_)))
}

/// Returns the version that a message of the newer era names.
pub(super) fn meta_version(raw: &Value) -> Option<&str> {
    raw.get("params")?.get("_meta")?.get(META_VERSION)?.as_str()
}

/// Returns the status for the only answer to a request of the newer era.
pub(super) fn status_of(answer: &ServerJsonRpcMessage, raw: &Value) -> StatusCode {
    let ServerJsonRpcMessage::Error(error) = answer else { return StatusCode::OK };
    let meta = raw.get("params").and_then(|params| params.get("_meta"));
    let has_capabilities =
        meta.and_then(|meta| meta.get(META_CAPABILITIES)).is_some_and(Value::is_object);
    match error.error.code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
        | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
        | ErrorCode::HEADER_MISMATCH => StatusCode::BAD_REQUEST,
        ErrorCode::INVALID_PARAMS if !has_capabilities => StatusCode::BAD_REQUEST,
        ErrorCode::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests;
