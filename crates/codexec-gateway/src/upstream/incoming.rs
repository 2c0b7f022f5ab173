//! Converts a server's lines to rmcp messages. Results stay raw, because rmcp's typed results fail
//! as a whole if one field is invalid.

use std::{collections::HashSet, sync::Arc};

use codexec_types::parse_lenient_json;
use rmcp::{
    RoleClient,
    model::{
        CustomResult, DiscoverResult, ErrorCode, ErrorData, InitializeResult, NumberOrString,
        ServerCapabilities, ServerResult,
    },
    service::RxJsonRpcMessage,
};
use serde_json::{Value, json};

use super::{
    call_pipe::PendingAnswers,
    line_owner::{LineOwner, find_line_owner},
    server_messages::{Handling, ServerMessages},
};

pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// Our unanswered requests, and the server's requests to us.
#[derive(Default)]
pub(super) struct InFlight {
    pub(super) server_messages: ServerMessages,
    /// Calls that bypass rmcp.
    calls: Arc<PendingAnswers>,
    /// Ids of rmcp's own requests.
    pub(super) ids: HashSet<i64>,
    /// The `initialize` request, whose result rmcp needs typed.
    pub(super) initialize: Option<i64>,
    /// The `server/discover` request of 2026-07-28 and later, likewise.
    pub(super) discover: Option<i64>,
}

impl InFlight {
    pub(super) fn new(calls: Arc<PendingAnswers>, server_messages: ServerMessages) -> InFlight {
        InFlight { server_messages, calls, ..InFlight::default() }
    }

    fn has(&self, id: i64) -> bool {
        self.ids.contains(&id) || self.calls.has(id)
    }

    /// Delivers an answer to a waiting call, or returns it as a message for rmcp.
    fn deliver_answer(&mut self, id: i64, answer: Result<Value, ErrorData>) -> Option<Message> {
        if !self.ids.remove(&id) {
            self.calls.deliver(id, answer);
            return None;
        }
        let number = NumberOrString::Number(id);
        Some(match answer {
            Ok(result) if self.initialize == Some(id) => {
                let result = ServerResult::InitializeResult(initialize_result(result));
                Message::response(result, number)
            }
            Ok(result) if self.discover == Some(id) => match discover_result(result) {
                Some(result) => Message::response(ServerResult::DiscoverResult(result), number),
                // An old server that answers any method.
                None => method_not_found(id),
            },
            Ok(result) => {
                Message::response(ServerResult::CustomResult(CustomResult(result)), number)
            }
            Err(error) => Message::error(error, Some(number)),
        })
    }

    fn fail(&mut self, id: i64, why: String) -> Option<Message> {
        self.deliver_answer(id, Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None)))
    }
}

/// A parsed line.
pub(super) type ParsedLine = serde_json::Result<Value>;

pub(super) fn parse_line(line: &[u8]) -> ParsedLine {
    parse_lenient_json(line.trim_ascii())
}

/// Returns the messages in one line, or `None` if the line is junk.
pub(super) fn read_messages(line: &[u8], in_flight: &mut InFlight) -> Option<Vec<Message>> {
    read_parsed_line(line, parse_line(line), in_flight)
}

/// Returns the messages in a line that is already parsed.
pub(super) fn read_parsed_line(
    line: &[u8],
    parsed: ParsedLine,
    in_flight: &mut InFlight,
) -> Option<Vec<Message>> {
    let line = line.trim_ascii();
    match parsed {
        Ok(Value::Array(batch)) => Some(
            batch
                .into_iter()
                .filter_map(|value| read_message(value, in_flight))
                .flatten()
                .collect(),
        ),
        Ok(value) => read_message(value, in_flight).map(|message| message.into_iter().collect()),
        Err(err) => match find_line_owner(line) {
            LineOwner::Request(id) if in_flight.has(id) => {
                let why = format!("the server's answer is not valid JSON ({err})");
                Some(in_flight.fail(id, why).into_iter().collect())
            }
            LineOwner::Request(_) | LineOwner::Server | LineOwner::Unknown => None,
        },
    }
}

/// Fails the request whose answer was too long, or all requests if the line's beginning does not
/// identify one.
pub(super) fn fail_oversized_line(
    head: &[u8],
    line_bytes: usize,
    in_flight: &mut InFlight,
) -> Vec<Message> {
    let failed_ids: Vec<i64> = match find_line_owner(head) {
        LineOwner::Request(id) if in_flight.has(id) => vec![id],
        LineOwner::Request(_) | LineOwner::Server => Vec::new(),
        LineOwner::Unknown => in_flight.ids.iter().copied().chain(in_flight.calls.ids()).collect(),
    };
    let megabytes = line_bytes >> 20;
    let why = format!("the server's answer is over the limit of {megabytes} MiB; ask for less");
    failed_ids.into_iter().filter_map(|id| in_flight.fail(id, why.clone())).collect()
}

/// Outer `None`: junk. Inner `None`: a valid message that needs no handling.
fn read_message(mut value: Value, in_flight: &mut InFlight) -> Option<Option<Message>> {
    let object = value.as_object_mut()?;
    if let Some(method) = object.get("method").and_then(Value::as_str) {
        return match in_flight.server_messages.handle(method, object) {
            Handling::Forward => Some(serde_json::from_value(value).ok()),
            Handling::Handled => Some(None),
        };
    }
    // Our ids are numbers. rmcp would accept the string "1" for the number 1, so it must not see
    // this answer. The waiting request is failed instead.
    if let Some(id) = object.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok()) {
        let why =
            "the server's answer has the request id as a string, which is invalid MCP".to_owned();
        return Some(if in_flight.has(id) { in_flight.fail(id, why) } else { None });
    }
    let id = object.get("id").and_then(Value::as_i64)?;
    if !in_flight.has(id) {
        // The caller has already left.
        return Some(None);
    }
    let answer = match object.remove("error") {
        Some(error) => Err(error_data(&error)),
        None => Ok(object.remove("result")?),
    };
    Some(in_flight.deliver_answer(id, answer))
}

/// Falls back to a minimal result: we use few fields, so an invalid one must not fail the server.
fn initialize_result(result: Value) -> InitializeResult {
    let version = result.get("protocolVersion").cloned();
    serde_json::from_value(result).unwrap_or_else(|_| {
        let minimal = InitializeResult::new(ServerCapabilities::default());
        match version.and_then(|version| serde_json::from_value(version).ok()) {
            Some(version) => minimal.with_protocol_version(version),
            None => minimal,
        }
    })
}

/// Fills in missing fields. Returns `None` if this is not a discovery result.
fn discover_result(mut result: Value) -> Option<DiscoverResult> {
    let fields = result.as_object_mut()?;
    fields.get("supportedVersions")?.as_array()?;
    let defaults = [
        ("resultType", json!("complete")),
        ("capabilities", json!({})),
        ("ttlMs", json!(0)),
        ("cacheScope", json!("private")),
    ];
    for (field, default) in defaults {
        fields.entry(field).or_insert(default);
    }
    serde_json::from_value(result).ok()
}

fn method_not_found(id: i64) -> Message {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "no discovery", None);
    Message::error(error, Some(NumberOrString::Number(id)))
}

pub(super) fn error_data(error: &Value) -> ErrorData {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = error.get("message").and_then(Value::as_str);
    let message = message.map_or_else(|| error.to_string(), str::to_owned);
    ErrorData::new(
        code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode),
        message,
        error.get("data").cloned(),
    )
}

#[cfg(test)]
mod tests;
