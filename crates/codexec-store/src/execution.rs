use std::time::{Duration, SystemTime};

use codexec_types::{Changes, Ending, ExecutionId, Limit, Outcome};

/// All that is kept of one execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    pub summary: Summary,
    pub code: String,
    /// A JSON text.
    pub input: String,
    pub output: Option<String>,
    /// A JSON text, or the part of it that the caller kept.
    pub value: Option<String>,
    /// What it did to the directory it worked in.
    pub changes: Changes,
}

/// One execution without its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub id: ExecutionId,
    /// A name, not a `Language`: a newer codexec may have written it.
    pub language: String,
    pub status: Status,
    /// Why it did not run to its own end, for example `TIMEOUT`.
    pub error_code: Option<String>,
    pub message: Option<String>,
    pub started: SystemTime,
    /// For an interrupted one: when that was noticed.
    pub ended: Option<SystemTime>,
    /// `None` while it runs, and when it was interrupted.
    pub duration: Option<Duration>,
    pub tool_calls: Option<u32>,
    /// The sandbox layers that were in force.
    pub posture: Option<String>,
    pub peak_memory_bytes: Option<u64>,
    pub cpu: Option<Duration>,
    /// The codes of the limits that it met without being stopped by them.
    pub limits_met: Vec<String>,
    /// Where the program ended by itself and said that it had failed.
    pub exit_code: Option<i32>,
    /// How many pictures it showed.
    pub images: Option<u32>,
}

/// How an execution ended, and what it used. The caller bounds the texts.
#[derive(Clone, Copy, Debug)]
pub struct Finish<'a> {
    pub ending: Ending<'a>,
    pub output: &'a str,
    pub value: Option<&'a str>,
    pub tool_calls: u32,
    pub duration: Duration,
    pub posture: &'a str,
    pub peak_memory_bytes: Option<u64>,
    pub cpu: Option<Duration>,
    pub changes: &'a Changes,
    pub limits_met: &'a [Limit],
    pub images: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Running,
    Returned,
    Threw,
    Stopped,
    Crashed,
    Cancelled,
    /// We could not run it, or our process died while it ran.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub running: u64,
    /// Those kept, running ones included.
    pub total: u64,
}

impl Status {
    const ALL: [Status; 7] = [
        Status::Running,
        Status::Returned,
        Status::Threw,
        Status::Stopped,
        Status::Crashed,
        Status::Cancelled,
        Status::Failed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Returned => "returned",
            Status::Threw => "threw",
            Status::Stopped => "stopped",
            Status::Crashed => "crashed",
            Status::Cancelled => "cancelled",
            Status::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name() == text)
    }

    pub(crate) fn of(ending: Ending<'_>) -> Status {
        match ending {
            Ending::Outcome(Outcome::Returned(_)) => Status::Returned,
            Ending::Outcome(Outcome::Threw(_) | Outcome::Exited { .. }) => Status::Threw,
            Ending::Outcome(Outcome::Stopped(_)) => Status::Stopped,
            Ending::Outcome(Outcome::Crashed(_)) => Status::Crashed,
            Ending::Outcome(Outcome::Cancelled) => Status::Cancelled,
            Ending::Failed { .. } => Status::Failed,
        }
    }
}
