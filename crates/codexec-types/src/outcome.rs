use serde::{Deserialize, Serialize};

use crate::{Json, Limit};

/// How the guest's code ended. None of these is a failure of codexec.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Returned(Json),
    Threw(Thrown),
    /// The program exited with a nonzero status.
    Exited {
        code: i32,
    },
    Stopped(Limit),
    Crashed(Crash),
    Cancelled,
}

/// An error that the guest did not catch, or that prevented its code from running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thrown {
    pub code: ThrownCode,
    pub message: String,
    /// Position in the code as it was sent.
    pub at: Option<Position>,
    /// The guest's own stack frames, one per line, with positions in the code as it was sent.
    pub stack: Option<String>,
}

/// One-based line and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// The codes that a guest may report for its own error. Limits that only the host can detect (a
/// timeout, too many calls) are not among them: see [`Outcome::Stopped`].
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
    CircuitOpen,
    ServiceUnavailable,
    RateLimited,
}

/// How a worker crashed. Guest code can always cause this (`os._exit`, `kill -9 $$`), so it is an
/// outcome, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process ended, by itself or by a signal, before it reported how the code ended.
    Exited,
    /// Killed by a signal that the host did not send.
    Killed { signal: i32 },
    /// The worker sent an invalid frame.
    BadFrame,
}

/// How an execution's record is completed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RecordEnding<'a> {
    Outcome(&'a Outcome),
    /// codexec could not run the code, for the reason with this code.
    Failed {
        code: &'static str,
    },
}

impl Thrown {
    /// The message for code that awaits a promise which nothing will settle. An engine that runs
    /// out of memory while it settles a promise loses it, and then reports this as well.
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
            ThrownCode::CircuitOpen => "CIRCUIT_OPEN",
            ThrownCode::ServiceUnavailable => "SERVICE_UNAVAILABLE",
            ThrownCode::RateLimited => "RATE_LIMITED",
        }
    }
}

impl Outcome {
    /// Returns the JSON text of the returned value.
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

    /// Returns the stable code that clients see, or `None` if the code ran to its end.
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
