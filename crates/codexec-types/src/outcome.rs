use serde::{Deserialize, Serialize};

use crate::{Json, Limit};

/// How the guest's code ended. None of these is our failure: the sandbox did its work.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Returned(Json),
    Threw(Thrown),
    /// The program ended by itself and said that it had failed.
    Exited {
        code: i32,
    },
    Stopped(Limit),
    Crashed(Crash),
    Cancelled,
}

/// An error that the guest did not catch, or that kept its code from running at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thrown {
    pub code: ThrownCode,
    pub message: String,
    /// In the code as it was sent.
    pub at: Option<Position>,
    /// The guest's own frames, one a line, in the code as it was sent.
    pub stack: Option<String>,
}

/// One-based line and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// What a guest may say of its own error. What only the host knows (a timeout, too many calls)
/// is not among it: that is [`Outcome::Stopped`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ThrownCode {
    SyntaxError,
    TranspileError,
    RuntimeError,
    MemoryLimit,
    SerializationError,
    InvalidArgs,
    ServerNotAllowed,
    ToolNotAllowed,
    ToolNotFound,
    ToolQuarantined,
    UpstreamError,
}

/// How a worker broke. Guest code can always bring this about (`os._exit`, `kill -9 $$`),
/// so it is an outcome, whatever the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process ended, by itself or by a signal, before it said how the code ended.
    Exited,
    /// A signal that was not ours.
    Killed { signal: i32 },
    /// It said something that is not a frame.
    BadFrame,
}

/// How an execution is written down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending<'a> {
    Outcome(&'a Outcome),
    /// We could not run it, for the reason with this code.
    Failed {
        code: &'static str,
    },
}

impl Thrown {
    /// The message of code that awaits what nothing will settle. An engine that runs out of memory
    /// while it settles something loses the promise, and then has nothing else to say.
    pub const STUCK: &str = "the code awaits something that nothing will ever settle: no tool call \
                             and no timer is left that could do it";
}

impl ThrownCode {
    pub fn name(self) -> &'static str {
        match self {
            ThrownCode::SyntaxError => "SYNTAX_ERROR",
            ThrownCode::TranspileError => "TRANSPILE_ERROR",
            ThrownCode::RuntimeError => "RUNTIME_ERROR",
            ThrownCode::MemoryLimit => "MEMORY_LIMIT",
            ThrownCode::SerializationError => "SERIALIZATION_ERROR",
            ThrownCode::InvalidArgs => "INVALID_ARGS",
            ThrownCode::ServerNotAllowed => "SERVER_NOT_ALLOWED",
            ThrownCode::ToolNotAllowed => "TOOL_NOT_ALLOWED",
            ThrownCode::ToolNotFound => "TOOL_NOT_FOUND",
            ThrownCode::ToolQuarantined => "TOOL_QUARANTINED",
            ThrownCode::UpstreamError => "UPSTREAM_ERROR",
        }
    }
}

impl Outcome {
    /// The JSON text of what it returned.
    pub fn value(&self) -> Option<&str> {
        match self {
            Outcome::Returned(value) => Some(value.text()),
            Outcome::Threw(_)
            | Outcome::Exited { .. }
            | Outcome::Stopped(_)
            | Outcome::Crashed(_)
            | Outcome::Cancelled => None,
        }
    }

    /// The stable code that clients see; `None` when the code ran to its end.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Outcome::Returned(_) => None,
            Outcome::Threw(thrown) => Some(thrown.code.name()),
            Outcome::Exited { .. } => Some("NONZERO_EXIT"),
            Outcome::Stopped(limit) => Some(limit.code()),
            Outcome::Crashed(_) => Some("CRASHED"),
            Outcome::Cancelled => Some("CANCELLED"),
        }
    }
}
