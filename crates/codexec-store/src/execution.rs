use std::time::{Duration, SystemTime};

use codexec_types::{
    Edge, ExecutionId, FileChanges, GuestOutput, Identity, Outcome, RecordEnding, RequestOrigin,
    SessionId,
};

/// The full record of one execution.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionRecord {
    pub summary: ExecutionSummary,
    pub code: String,
    /// A JSON text.
    pub input: String,
    /// The arguments of the program.
    pub args: Vec<String>,
    pub written: Option<GuestOutput>,
    /// A JSON text, or the beginning of one that the caller truncated.
    pub value: Option<String>,
    /// The limit of the running time.
    pub wall: Duration,
    /// The changes to its working directory.
    pub changes: FileChanges,
    pub working_dir: Option<String>,
    pub context: RequestOrigin,
    /// The identity that the execution ran for.
    pub identity: Option<Identity>,
    /// The edge that accepted the request. `None` in rows of an older codexec.
    pub edge: Option<Edge>,
    /// The tools that the code could call: a call had to match a pattern of each list. `None` in
    /// rows of an older codexec.
    pub allowed_tools: Option<Vec<Vec<String>>>,
    /// The names of the grants, which allow more of codexec's own functions.
    pub grants: Vec<String>,
    pub calls: Vec<CallRecord>,
    /// The packages that its session had installed before the execution started.
    pub packages: Vec<String>,
}

/// One execution without its texts (code, input, output, value).
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionSummary {
    pub id: ExecutionId,
    /// A name, not a `Language`, because a newer codexec may have written it.
    pub language: String,
    pub status: ExecutionStatus,
    /// The coarser status that people search by.
    pub kind: CoarseStatus,
    /// The reason why the code did not run to completion, for example `TIMEOUT`.
    pub error_code: Option<String>,
    pub message: Option<String>,
    pub started: SystemTime,
    /// For an interrupted execution, when the interruption was noticed.
    pub ended: Option<SystemTime>,
    /// `None` for a running or interrupted execution.
    pub duration: Option<Duration>,
    pub tool_calls: Option<u32>,
    /// The sandbox layers that were in force.
    pub posture: Option<String>,
    pub peak_memory_bytes: Option<u64>,
    pub cpu: Option<Duration>,
    /// The codes of the limits that the code reached without being stopped.
    pub limits_met: Vec<String>,
    /// The exit code of a program that failed.
    pub exit_code: Option<i32>,
    /// How many images the code showed.
    pub images: Option<u32>,
    pub session: Option<SessionId>,
    /// A saved script's name and version.
    pub script: Option<(String, u32)>,
}

/// The record of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    pub number: u32,
    pub server: String,
    pub tool: String,
    /// A JSON text, or the beginning of a long one.
    pub args: String,
    pub args_bytes: u64,
    /// When the call began, counted from the start of the execution. `None` in rows of an older
    /// codexec.
    pub after: Option<Duration>,
    /// `None` if no answer arrived before the execution ended.
    pub duration: Option<Duration>,
    pub error_code: Option<String>,
    pub message: Option<String>,
    /// The length of the result, which is not stored.
    pub result_bytes: Option<u64>,
}

/// The record of a session, open or ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRecord {
    pub id: SessionId,
    pub identity: Identity,
    /// The edge that accepted the request. `None` in rows of an older codexec.
    pub edge: Option<Edge>,
    pub language: String,
    pub name: Option<String>,
    pub pid: Option<u32>,
    pub working_dir: Option<String>,
    pub context: RequestOrigin,
    pub started: SystemTime,
    pub ended: Option<SystemTime>,
    /// The reason why the session ended.
    pub reason: Option<String>,
    pub executions: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionStatus {
    Running,
    Returned,
    Threw,
    Stopped,
    Crashed,
    Cancelled,
    /// The server could not run the code, or died while it ran.
    Failed,
}

/// The coarse status of an execution, which people search by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoarseStatus {
    Success,
    Failed,
    Timeout,
    Running,
    /// The server died while the code ran.
    Interrupted,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionCounts {
    pub running: u64,
    /// All stored executions, including running ones.
    pub total: u64,
}

/// The sums over all executions of a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionTotals {
    /// Tool calls that were answered.
    pub calls: u64,
    /// Bytes of the results of tool calls.
    pub result_bytes: u64,
    /// Bytes of outputs and values.
    pub shown_bytes: u64,
    /// Bytes that tools returned and the code did not show, counted for each execution by itself.
    pub saved_bytes: u64,
}

impl ExecutionSummary {
    /// Returns an exit status as of a program: 0 on success, 1 if the code threw, the program's own
    /// if it has one, and `None` if it was stopped.
    pub fn exit_status(&self) -> Option<i32> {
        match self.status {
            ExecutionStatus::Returned => Some(0),
            ExecutionStatus::Threw => Some(self.exit_code.unwrap_or(1)),
            ExecutionStatus::Running
            | ExecutionStatus::Stopped
            | ExecutionStatus::Crashed
            | ExecutionStatus::Cancelled
            | ExecutionStatus::Failed => self.exit_code,
        }
    }
}

impl ExecutionStatus {
    const ALL: [ExecutionStatus; 7] = [
        ExecutionStatus::Running,
        ExecutionStatus::Returned,
        ExecutionStatus::Threw,
        ExecutionStatus::Stopped,
        ExecutionStatus::Crashed,
        ExecutionStatus::Cancelled,
        ExecutionStatus::Failed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ExecutionStatus::Running => "running",
            ExecutionStatus::Returned => "returned",
            ExecutionStatus::Threw => "threw",
            ExecutionStatus::Stopped => "stopped",
            ExecutionStatus::Crashed => "crashed",
            ExecutionStatus::Cancelled => "cancelled",
            ExecutionStatus::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<ExecutionStatus> {
        ExecutionStatus::ALL.into_iter().find(|status| status.name() == text)
    }

    pub(crate) fn of(ending: RecordEnding<'_>) -> ExecutionStatus {
        match ending {
            RecordEnding::Outcome(Outcome::Returned(_)) => ExecutionStatus::Returned,
            RecordEnding::Outcome(Outcome::Threw(_) | Outcome::Exited { .. }) => {
                ExecutionStatus::Threw
            }
            RecordEnding::Outcome(Outcome::Stopped(_)) => ExecutionStatus::Stopped,
            RecordEnding::Outcome(Outcome::Crashed(_)) => ExecutionStatus::Crashed,
            RecordEnding::Outcome(Outcome::Cancelled) => ExecutionStatus::Cancelled,
            RecordEnding::Failed { .. } => ExecutionStatus::Failed,
        }
    }
}

impl CoarseStatus {
    pub const ALL: [CoarseStatus; 6] = [
        CoarseStatus::Success,
        CoarseStatus::Failed,
        CoarseStatus::Timeout,
        CoarseStatus::Running,
        CoarseStatus::Interrupted,
        CoarseStatus::Cancelled,
    ];

    pub fn name(self) -> &'static str {
        match self {
            CoarseStatus::Success => "success",
            CoarseStatus::Failed => "failed",
            CoarseStatus::Timeout => "timeout",
            CoarseStatus::Running => "running",
            CoarseStatus::Interrupted => "interrupted",
            CoarseStatus::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<CoarseStatus> {
        CoarseStatus::ALL.into_iter().find(|kind| kind.name() == text)
    }
}
