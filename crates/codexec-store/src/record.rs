//! What callers hand in to be written down.

use std::{
    path::Path,
    time::{Duration, SystemTime},
};

use codexec_types::{
    Admitted, ExecutionId, FileChanges, GuestOutput, Language, Limit, Principal, RecordEnding,
    RequestOrigin, SessionId,
};

/// What is known of an execution before it runs.
#[derive(Clone, Copy, Debug)]
pub struct Begin<'a> {
    pub id: &'a ExecutionId,
    pub admitted: &'a Admitted,
    pub started: SystemTime,
    pub session: Option<&'a SessionId>,
    /// A saved script's name and version.
    pub script: Option<(&'a str, u32)>,
    pub context: &'a RequestOrigin,
    pub principal: &'a Principal,
}

/// How an execution ended, and what it used. The caller bounds the texts.
#[derive(Clone, Copy, Debug)]
pub struct Finish<'a> {
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

/// A tool call that is about to go out.
#[derive(Clone, Copy, Debug)]
pub struct ToolCall<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    /// A JSON text. A long one is kept in part.
    pub args: &'a str,
    /// How much of it is kept at most.
    pub kept_bytes: usize,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd<'a> {
    /// A code and a message.
    pub error: Option<(&'a str, &'a str)>,
    pub duration: Duration,
    /// A JSON text, where it is to be kept. A long one is not kept.
    pub result: Option<&'a str>,
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

/// What an acknowledgement stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// What was acknowledged survives the death of our process, at any moment.
    #[default]
    Process,
    /// It was also synced to the disk, so that it survives the loss of power.
    Power,
}
