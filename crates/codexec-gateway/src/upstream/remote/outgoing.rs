use reqwest::header::HeaderMap;
use serde_json::Value;

/// Something to send.
pub(super) struct Outgoing {
    /// `None`: nobody waits for an answer.
    pub(super) id: Option<i64>,
    pub(super) method: String,
    pub(super) body: Vec<u8>,
    pub(super) headers: HeaderMap,
    /// Of 2026-07-28 or later.
    pub(super) is_modern: bool,
}

impl Outgoing {
    /// What a server gets for a request of its own.
    pub(super) fn reply(reply: &Value) -> Outgoing {
        Outgoing {
            id: None,
            method: String::new(),
            body: serde_json::to_vec(reply).unwrap_or_default(),
            headers: HeaderMap::new(),
            is_modern: false,
        }
    }

    /// What it asks has to be answered before anything else can be.
    pub(super) fn is_handshake(&self) -> bool {
        matches!(self.method.as_str(), "initialize" | "server/discover")
    }
}
