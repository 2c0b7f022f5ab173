use reqwest::header::HeaderMap;

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
    /// What it asks has to be answered before anything else can be.
    pub(super) fn is_handshake(&self) -> bool {
        matches!(self.method.as_str(), "initialize" | "server/discover")
    }
}
