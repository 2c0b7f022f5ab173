use std::fmt;

use codexec_types::{Crash, Limit, Outcome};

/// The reason why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// The guest's process exited by itself, or was killed from inside.
    Exited,
    /// A limit was reached and the session could not continue; [`Limit::Wall`] means that a cell
    /// did not stop in time after it was interrupted.
    Stopped(Limit),
    /// A cell was cancelled and did not stop.
    Cancelled,
    /// The guest sent an invalid frame.
    BadFrame,
    /// The host closed the session.
    Closed,
}

impl Over {
    /// Derives the reason from the outcome of the last cell.
    pub(super) fn from_outcome(outcome: &Outcome) -> Over {
        match outcome {
            Outcome::Stopped(limit) => Over::Stopped(*limit),
            Outcome::Cancelled => Over::Cancelled,
            Outcome::Crashed(Crash::BadFrame) => Over::BadFrame,
            Outcome::Returned(_)
            | Outcome::Threw(_)
            | Outcome::Exited { .. }
            | Outcome::Crashed(Crash::Exited | Crash::Killed { .. }) => Over::Exited,
        }
    }

    /// Returns a stable word for records and clients.
    pub fn code(self) -> &'static str {
        match self {
            Over::Exited => "exited",
            Over::Stopped(Limit::Wall) => "timeout",
            Over::Stopped(Limit::Cpu) => "cpu",
            Over::Stopped(Limit::Memory) => "memory",
            Over::Stopped(Limit::Processes) => "processes",
            Over::Stopped(Limit::OpenFiles) => "open_files",
            Over::Stopped(Limit::Disk) => "disk",
            Over::Stopped(Limit::Output) => "output",
            Over::Stopped(Limit::ToolCalls) => "tool_calls",
            Over::Cancelled => "cancelled",
            Over::BadFrame => "bad_frame",
            Over::Closed => "closed",
        }
    }
}

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Over::Exited => "its process ended",
            Over::Stopped(Limit::Memory) => "it used up its memory",
            Over::Stopped(Limit::Cpu) => "it used up its CPU time",
            Over::Stopped(Limit::Wall) => "its code ran out of time and could not be interrupted",
            Over::Stopped(Limit::Output) => "it wrote too much and could not be interrupted",
            Over::Stopped(Limit::ToolCalls) => {
                "it made too many tool calls and could not be interrupted"
            }
            Over::Stopped(Limit::Processes | Limit::OpenFiles | Limit::Disk) => {
                "it reached a limit"
            }
            Over::Cancelled => "its code was cancelled and could not be interrupted",
            Over::BadFrame => "it broke the protocol between guest and host",
            Over::Closed => "it was closed",
        })
    }
}
