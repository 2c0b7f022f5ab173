use std::time::SystemTime;

use codexec_types::{Identity, SessionId};

use crate::{CoarseStatus, ExecutionSummary};

/// The rows that a reader may see. Every query takes one, and applies it in its SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadScope {
    /// The rows of all identities.
    Everyone,
    Of(Identity),
    /// Only what this server process ran for this identity.
    RanHereFor(Identity),
}

impl ReadScope {
    /// Returns the value of the column `principal` that a row must have, if any.
    pub(crate) fn principal(&self) -> Option<String> {
        match self {
            ReadScope::Everyone => None,
            ReadScope::Of(identity) | ReadScope::RanHereFor(identity) => Some(identity.to_string()),
        }
    }

    /// Returns the value of the column `owner` that a row must have, if any.
    pub(crate) fn owner<'a>(&self, own: &'a str) -> Option<&'a str> {
        match self {
            ReadScope::Everyone | ReadScope::Of(_) => None,
            ReadScope::RanHereFor(_) => Some(own),
        }
    }
}

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
    /// At most 1,000.
    pub limit: u32,
    pub offset: u64,
}

/// A list of sessions, newest first, including ended ones.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Only these sessions.
    pub only: Option<Vec<SessionId>>,
    /// At most 1,000.
    pub limit: u32,
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
