use serde::{Deserialize, Serialize};

use crate::{Ask, Image, Outcome};

/// What happened in a run, as the host sees it. Never on a wire, so a guest cannot forge
/// what only the host can know: that a limit was hit, or that somebody cancelled.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Output {
        stream: Stream,
        text: String,
    },
    /// The guest wants something and awaits the answer with this id.
    Ask {
        id: u32,
        ask: Ask,
    },
    /// The guest shows a picture.
    Image(Image),
    /// The guest says how far it is.
    Progress(String),
    Ended(Outcome),
}

/// Where a guest wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Out,
    Err,
}
