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
