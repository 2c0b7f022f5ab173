use std::time::SystemTime;

use codexec_types::{Principal, SessionId};

use crate::{CoarseStatus, ExecutionSummary};

/// A search for executions that match all given fields, newest first.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    pub language: Option<String>,
    pub status: Option<CoarseStatus>,
    /// Words, each a prefix of a word in the code, the output, the value or the message. Running
    /// executions do not match.
    pub text: Option<String>,
    /// The earliest start.
    pub since: Option<SystemTime>,
    /// The latest start.
    pub until: Option<SystemTime>,
    pub session: Option<SessionId>,
    /// A tool that the code called: `tool`, `server.tool`, `server:tool` or `mcp__server__tool`.
    pub tool: Option<String>,
    /// Only executions that this server ran for this principal.
    pub ran_here_for: Option<Principal>,
    /// At most 1,000.
    pub limit: u32,
    pub offset: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogPage {
    pub results: Vec<LogMatch>,
    /// The number of matches on all pages.
    pub total: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LogMatch {
    pub summary: ExecutionSummary,
    /// The beginning of the code.
    pub code: String,
    /// The error message; for a program that failed, the end of its output.
    pub error: Option<String>,
}
