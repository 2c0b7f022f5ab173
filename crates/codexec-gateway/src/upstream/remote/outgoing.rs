use reqwest::header::HeaderMap;
use rmcp::{
    RoleClient,
    model::{ClientNotification, JsonRpcMessage, NumberOrString},
    service::TxJsonRpcMessage,
};
use serde_json::Value;

/// A message to send.
pub(super) struct OutgoingMessage {
    /// `None`: no answer is expected.
    pub(super) id: Option<i64>,
    pub(super) method: String,
    pub(super) body: Vec<u8>,
    pub(super) headers: HeaderMap,
    /// Of 2026-07-28 or later.
    pub(super) is_modern: bool,
}

impl OutgoingMessage {
    /// Creates a message without the headers of newer protocol versions.
    pub(super) fn new(message: &Value, id: Option<i64>) -> OutgoingMessage {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        OutgoingMessage {
            id,
            method: method.to_owned(),
            body: serde_json::to_vec(message).unwrap_or_default(),
            headers: HeaderMap::new(),
            is_modern: false,
        }
    }

    /// Returns true if no other request can be sent before this one is answered.
    pub(super) fn is_handshake(&self) -> bool {
        matches!(self.method.as_str(), "initialize" | "server/discover")
    }
}

/// Returns the id of a request; `None` for other messages. rmcp's own ids are all numbers.
pub(super) fn request_id(item: &TxJsonRpcMessage<RoleClient>) -> Option<i64> {
    match item {
        JsonRpcMessage::Request(request) => number(&request.id),
        JsonRpcMessage::Notification(_)
        | JsonRpcMessage::Response(_)
        | JsonRpcMessage::Error(_) => None,
    }
}

/// Returns the id of the request that this message cancels.
pub(super) fn cancelled_id(item: &TxJsonRpcMessage<RoleClient>) -> Option<i64> {
    let JsonRpcMessage::Notification(notification) = item else { return None };
    match &notification.notification {
        ClientNotification::CancelledNotification(it) => {
            it.params.request_id.as_ref().and_then(number)
        }
        _ => None,
    }
}

fn number(id: &NumberOrString) -> Option<i64> {
    match id {
        NumberOrString::Number(id) => Some(*id),
        NumberOrString::String(_) => None,
    }
}
