use serde::{Deserialize, Serialize};

use crate::{Ask, Image, Outcome};

/// An event of a run, as the host sees it. Events never cross a wire, so a guest cannot forge what
/// only the host knows: that a limit was hit, or that the run was cancelled.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    Output {
        stream: OutputStream,
        text: String,
    },
    /// The guest asks for something and awaits the answer with this id.
    Ask {
        id: u32,
        ask: Ask,
    },
    /// The guest emits an image.
    Image(Image),
    /// The guest reports its progress.
    Progress(String),
    Ended(Outcome),
}

/// The stream that a guest wrote to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStream {
    Out,
    Err,
}
