use std::time::{Duration, SystemTime};

use codexec_types::{
    ExecutionId, FileChanges, GuestOutput, Outcome, RecordEnding, RequestOrigin, SessionId,
};

/// All that is kept of one execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    pub summary: Summary,
    pub code: String,
    /// A JSON text.
    pub input: String,
    /// As a program's arguments.
    pub args: Vec<String>,
    pub written: Option<GuestOutput>,
    /// A JSON text, or the part of it that the caller kept.
    pub value: Option<String>,
    /// What it did to the directory it worked in.
    pub changes: FileChanges,
    pub working_dir: Option<String>,
    pub context: RequestOrigin,
    /// Whose it is. `None` in rows that an older codexec wrote.
    pub principal: Option<String>,
    /// The tools it might call: a call had to match a pattern of each list. `None` in rows that an
    /// older codexec wrote.
    pub allowed_tools: Option<Vec<Vec<String>>>,
    /// The names of what of codexec's own it might do beside what was its own.
    pub grants: Vec<String>,
    pub calls: Vec<Call>,
    /// What its session had installed before it started.
    pub packages: Vec<String>,
}

/// One execution without its texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub id: ExecutionId,
    /// A name, not a `Language`: a newer codexec may have written it.
    pub language: String,
    pub status: Status,
    /// The coarser word that people search by.
    pub kind: Kind,
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
    pub session: Option<SessionId>,
    /// A saved script's name and version.
    pub script: Option<(String, u32)>,
}

/// A tool call as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub number: u32,
    pub server: String,
    pub tool: String,
    /// A JSON text, or the beginning of a long one.
    pub args: String,
    pub args_bytes: u64,
    /// `None` where no answer came before the end.
    pub duration: Option<Duration>,
    pub error_code: Option<String>,
    pub message: Option<String>,
    pub result: Option<String>,
    pub result_bytes: Option<u64>,
}

/// A session, living or ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    pub id: SessionId,
    pub principal: String,
    pub language: String,
    pub name: Option<String>,
    pub pid: Option<u32>,
    pub working_dir: Option<String>,
    pub context: RequestOrigin,
    pub started: SystemTime,
    pub ended: Option<SystemTime>,
    /// Why it ended.
    pub reason: Option<String>,
    pub executions: Option<u32>,
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

/// How an execution ended, in the words that people search by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Success,
    Failed,
    Timeout,
    Running,
    /// Our process died while it ran.
    Interrupted,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    pub running: u64,
    /// Those kept, running ones included.
    pub total: u64,
}

impl Summary {
    /// As a program's: 0 when all went well, 1 when the code threw, the program's own where it has
    /// one, and none where it was stopped.
    pub fn exit_status(&self) -> Option<i32> {
        match self.status {
            Status::Returned => Some(0),
            Status::Threw => Some(self.exit_code.unwrap_or(1)),
            Status::Running
            | Status::Stopped
            | Status::Crashed
            | Status::Cancelled
            | Status::Failed => self.exit_code,
        }
    }
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

    pub(crate) fn of(ending: RecordEnding<'_>) -> Status {
        match ending {
            RecordEnding::Outcome(Outcome::Returned(_)) => Status::Returned,
            RecordEnding::Outcome(Outcome::Threw(_) | Outcome::Exited { .. }) => Status::Threw,
            RecordEnding::Outcome(Outcome::Stopped(_)) => Status::Stopped,
            RecordEnding::Outcome(Outcome::Crashed(_)) => Status::Crashed,
            RecordEnding::Outcome(Outcome::Cancelled) => Status::Cancelled,
            RecordEnding::Failed { .. } => Status::Failed,
        }
    }
}

impl Kind {
    pub const ALL: [Kind; 6] = [
        Kind::Success,
        Kind::Failed,
        Kind::Timeout,
        Kind::Running,
        Kind::Interrupted,
        Kind::Cancelled,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Success => "success",
            Kind::Failed => "failed",
            Kind::Timeout => "timeout",
            Kind::Running => "running",
            Kind::Interrupted => "interrupted",
            Kind::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == text)
    }
}
