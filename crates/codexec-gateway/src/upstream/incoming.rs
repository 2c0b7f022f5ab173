//! From a server's line to what rmcp understands. Results stay raw: rmcp's typed results fail
//! as a whole when a server gets one field wrong.

use std::collections::HashSet;

use codexec_types::lenient_json;
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
    owner::{Owner, owner},
    theirs::{Fate, Theirs},
};

pub(super) type Message = RxJsonRpcMessage<RoleClient>;

/// What we asked and have no answer to, and what the server asks us.
#[derive(Default)]
pub(super) struct InFlight {
    pub(super) theirs: Theirs,
    pub(super) ids: HashSet<i64>,
    /// The request whose result must be typed.
    pub(super) initialize: Option<i64>,
    /// The same, from 2026-07-28 on.
    pub(super) discover: Option<i64>,
}

/// The messages in one line; `None` when it is junk.
pub(super) fn read(line: &[u8], in_flight: &mut InFlight) -> Option<Vec<Message>> {
    let line = line.trim_ascii();
    match lenient_json(line) {
        Ok(Value::Array(batch)) => Some(
            batch.into_iter().filter_map(|value| message(value, in_flight)).flatten().collect(),
        ),
        Ok(value) => message(value, in_flight).map(|message| message.into_iter().collect()),
        Err(err) => match owner(line) {
            Owner::Request(id) if in_flight.ids.contains(&id) => {
                let why = format!("the server's answer is not valid JSON ({err})");
                Some(vec![failure(id, why, in_flight)])
            }
            Owner::Request(_) | Owner::Server | Owner::Unknown => None,
        },
    }
}

/// Answers for those whose answer will not come: the owner of a line that was too long, or
/// everybody when it does not say whose it was.
pub(super) fn too_long(head: &[u8], line_bytes: usize, in_flight: &mut InFlight) -> Vec<Message> {
    let losers: Vec<i64> = match owner(head) {
        Owner::Request(id) if in_flight.ids.contains(&id) => vec![id],
        Owner::Request(_) | Owner::Server => Vec::new(),
        Owner::Unknown => in_flight.ids.iter().copied().collect(),
    };
    let megabytes = line_bytes >> 20;
    let why = format!("the server's answer is over the limit of {megabytes} MiB; ask for less");
    losers.into_iter().map(|id| failure(id, why.clone(), in_flight)).collect()
}

/// Outer `None`: junk. Inner `None`: fine, and of no interest.
fn message(mut value: Value, in_flight: &mut InFlight) -> Option<Option<Message>> {
    let object = value.as_object_mut()?;
    if let Some(method) = object.get("method").and_then(Value::as_str) {
        return match in_flight.theirs.hear(method, object) {
            Fate::PassOn => Some(serde_json::from_value(value).ok()),
            Fate::Done => Some(None),
        };
    }
    // Our ids are numbers. The text "1" is not 1, and rmcp must not see it, because it would take
    // it for 1; but who waits for 1 waits in vain, and is told so.
    if let Some(id) = object.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok()) {
        let why = "the server answered with its request's id as a text; that is not MCP".to_owned();
        return Some(in_flight.ids.contains(&id).then(|| failure(id, why, in_flight)));
    }
    let id = object.get("id").and_then(Value::as_i64)?;
    if !in_flight.ids.contains(&id) {
        // An answer that comes after its caller has left.
        return Some(None);
    }
    if let Some(error) = object.remove("error") {
        in_flight.ids.remove(&id);
        return Some(Some(Message::error(error_data(&error), Some(NumberOrString::Number(id)))));
    }
    let result = object.remove("result")?;
    in_flight.ids.remove(&id);
    let result = if in_flight.initialize == Some(id) {
        ServerResult::InitializeResult(initialize_result(result))
    } else if in_flight.discover == Some(id) {
        match discover_result(result) {
            Some(result) => ServerResult::DiscoverResult(result),
            // It knows nothing of discovery and answers everything.
            None => return Some(Some(unknown_method(id))),
        }
    } else {
        ServerResult::CustomResult(CustomResult(result))
    };
    Some(Some(Message::response(result, NumberOrString::Number(id))))
}

/// We need little of it, so a bad field is no reason to lose the server.
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

/// The same. `None`: it is none.
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

fn unknown_method(id: i64) -> Message {
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

fn failure(id: i64, why: String, in_flight: &mut InFlight) -> Message {
    in_flight.ids.remove(&id);
    let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, why, None);
    Message::error(error, Some(NumberOrString::Number(id)))
}

#[cfg(test)]
mod tests;
