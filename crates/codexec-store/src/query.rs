use std::time::SystemTime;

use codexec_types::{Principal, SessionId};

use crate::{Kind, Summary};

/// Which executions are looked for: those that meet all that is said here, the newest first.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    pub language: Option<String>,
    pub status: Option<Kind>,
    /// Plain words, each of which is the beginning of one in the code, the output, the value or
    /// the message. Those that still run are not found by their words.
    pub text: Option<String>,
    /// Started then or later.
    pub since: Option<SystemTime>,
    /// Started then or earlier.
    pub until: Option<SystemTime>,
    pub session: Option<SessionId>,
    /// A tool that it called: `tool`, `server.tool`, `server:tool` or `mcp__server__tool`.
    pub tool: Option<String>,
    /// Only what this server ran for this principal.
    pub ran_here_for: Option<Principal>,
    /// 1,000 at most.
    pub limit: u32,
    pub offset: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogPage {
    pub results: Vec<Found>,
    /// How many there are in all.
    pub total: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub summary: Summary,
    /// The beginning of the code.
    pub code: String,
    /// What went wrong: the message, or for a program that failed the end of what it wrote.
    pub error: Option<String>,
}
