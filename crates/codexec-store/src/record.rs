//! The values that callers pass in to be stored.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use codexec_types::{
    Admitted, ExecutionId, FileChanges, GuestOutput, Language, Limit, Principal, RecordEnding,
    RequestOrigin, SessionId,
};

/// The start of an execution, before it runs.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionStart<'a> {
    pub id: &'a ExecutionId,
    pub admitted: &'a Admitted,
    pub started: SystemTime,
    pub session: Option<&'a SessionId>,
    /// A saved script's name and version.
    pub script: Option<(&'a str, u32)>,
    pub context: &'a RequestOrigin,
    pub principal: &'a Principal,
}

/// The end of an execution and its resource usage. The caller limits the lengths of the texts.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionEnd<'a> {
    pub ending: RecordEnding<'a>,
    pub output: &'a GuestOutput,
    pub value: Option<&'a str>,
    pub tool_calls: u32,
    pub duration: Duration,
    pub posture: &'a str,
    pub peak_memory_bytes: Option<u64>,
    pub cpu: Option<Duration>,
    pub changes: &'a FileChanges,
    pub limits_met: &'a [Limit],
    pub images: u32,
}

/// A tool call that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct CallStart<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    /// A JSON text. A long one is truncated.
    pub args: &'a str,
    /// The maximum number of bytes to store.
    pub kept_bytes: usize,
    /// The time since the start of the execution.
    pub after: Duration,
}

/// The end of a tool call.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd<'a> {
    /// A code and a message.
    pub error: Option<(&'a str, &'a str)>,
    pub duration: Duration,
    /// The length of the result, which is not stored.
    pub result_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct SessionStart<'a> {
    pub id: &'a SessionId,
    pub principal: &'a Principal,
    pub language: Language,
    pub name: Option<&'a str>,
    pub pid: Option<u32>,
    pub working_dir: Option<&'a Path>,
    pub context: &'a RequestOrigin,
    pub at: SystemTime,
}

/// The installation of a package, whether it succeeded or not.
#[derive(Clone, Copy, Debug)]
pub struct PackageInstall<'a> {
    pub target: &'a PackageTarget,
    pub name: &'a str,
    /// The installed version, if the installation succeeded.
    pub version: Option<&'a str>,
    pub is_ok: bool,
    pub principal: &'a Principal,
    pub at: SystemTime,
}

/// The code that a package is installed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackageTarget {
    Session(SessionId),
    /// All code of this language.
    Everybody(Language),
}

/// The failure that an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The death of our process, at any moment.
    #[default]
    Process,
    /// Also a power failure: every write is synced to disk.
    Power,
}
