use std::fmt;

use codexec_types::{Crash, Limit, Outcome};

/// The reason why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
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

impl SessionEnd {
    /// Derives the reason from the outcome of the last cell.
    pub(in crate::run) fn from_outcome(outcome: &Outcome) -> SessionEnd {
        match outcome {
            Outcome::Stopped(limit) => SessionEnd::Stopped(*limit),
            Outcome::Cancelled => SessionEnd::Cancelled,
            Outcome::Crashed(Crash::BadFrame) => SessionEnd::BadFrame,
            Outcome::Returned(_)
            | Outcome::Threw(_)
            | Outcome::Exited { .. }
            | Outcome::Crashed(Crash::Exited | Crash::Killed { .. }) => SessionEnd::Exited,
        }
    }

    /// Returns a stable word for records and clients.
    pub fn code(self) -> &'static str {
        match self {
            SessionEnd::Exited => "exited",
            SessionEnd::Stopped(Limit::Wall) => "timeout",
            SessionEnd::Stopped(Limit::Cpu) => "cpu",
            SessionEnd::Stopped(Limit::Memory) => "memory",
            SessionEnd::Stopped(Limit::Processes) => "processes",
            SessionEnd::Stopped(Limit::OpenFiles) => "open_files",
            SessionEnd::Stopped(Limit::Disk) => "disk",
            SessionEnd::Stopped(Limit::Output) => "output",
            SessionEnd::Stopped(Limit::ToolCalls) => "tool_calls",
            SessionEnd::Cancelled => "cancelled",
            SessionEnd::BadFrame => "bad_frame",
            SessionEnd::Closed => "closed",
        }
    }
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SessionEnd::Exited => "its process ended",
            SessionEnd::Stopped(Limit::Memory) => "it used up its memory",
            SessionEnd::Stopped(Limit::Cpu) => "it used up its CPU time",
            SessionEnd::Stopped(Limit::Wall) => {
                "its code ran out of time and could not be interrupted"
            }
            SessionEnd::Stopped(Limit::Output) => "it wrote too much and could not be interrupted",
            SessionEnd::Stopped(Limit::ToolCalls) => {
                "it made too many tool calls and could not be interrupted"
            }
            SessionEnd::Stopped(Limit::Processes | Limit::OpenFiles | Limit::Disk) => {
                "it reached a limit"
            }
            SessionEnd::Cancelled => "its code was cancelled and could not be interrupted",
            SessionEnd::BadFrame => "it broke the protocol between guest and host",
            SessionEnd::Closed => "it was closed",
        })
    }
}
