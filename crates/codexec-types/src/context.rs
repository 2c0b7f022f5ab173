use serde::{Deserialize, Serialize};

/// The request's origin, according to the client's `_meta`. Only recorded, never used for a
/// decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestOrigin {
    pub agent_id: Option<String>,
    pub trace_id: Option<String>,
    pub chat_id: Option<String>,
}

/// The owner of sessions and snapshots. All stdio clients of one user share a principal; an edge
/// with tokens uses the token's owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Principal(String);

impl Principal {
    /// Returns the user who started the server.
    pub fn local() -> Principal {
        Principal("local".to_owned())
    }

    pub fn named(name: impl Into<String>) -> Principal {
        Principal(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}
