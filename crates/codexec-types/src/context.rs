use serde::{Deserialize, Serialize};

/// Who is behind a request, as far as a record tells it: what the client's `_meta` says about
/// itself. Never used to decide anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Context {
    pub agent_id: Option<String>,
    pub trace_id: Option<String>,
    pub chat_id: Option<String>,
}

/// Whose sessions and snapshots these are. Every client of one user over standard input is the
/// same; an edge with tokens names each by its token's owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Principal(String);

impl Principal {
    /// The user who started the server.
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
