use std::time::SystemTime;

use codexec_types::{Edge, Identity, SessionId};

use crate::{CoarseStatus, ExecutionSummary};

/// The maximum number of results of one query.
pub(crate) const PAGE_MAX: u32 = 1_000;

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
    /// True if a row of this identity, which this server process wrote, is among them.
    pub fn includes(&self, identity: &Identity) -> bool {
        match self {
            ReadScope::Everyone => true,
            ReadScope::Of(own) | ReadScope::RanHereFor(own) => own == identity,
        }
    }

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
    /// The agent that the client named.
    pub agent: Option<String>,
    /// A tool that the code called: `tool`, `server.tool`, `server:tool` or `mcp__server__tool`.
    pub tool: Option<String>,
    /// At most 1,000.
    pub limit: u32,
    pub offset: u64,
}

impl LogQuery {
    /// Returns the maximum number of results on a page.
    pub(crate) fn page_limit(&self) -> u32 {
        self.limit.min(PAGE_MAX)
    }

    /// Splits the name of the tool into the server, if the name has one, and the tool.
    pub(crate) fn server_and_tool(&self) -> (Option<&str>, Option<&str>) {
        let Some(name) = self.tool.as_deref() else { return (None, None) };
        let split = match name.strip_prefix("mcp__") {
            Some(rest) => rest.split_once("__"),
            None => name.split_once(['.', ':']),
        };
        split.map_or((None, Some(name)), |(server, tool)| (Some(server), Some(tool)))
    }
}

/// A list of sessions, newest first, including ended ones.
#[derive(Clone, Debug, Default)]
pub struct SessionQuery {
    /// Only these sessions.
    pub only: Option<Vec<SessionId>>,
    /// At most 1,000.
    pub limit: u32,
}

impl SessionQuery {
    /// Returns the maximum number of results.
    pub(crate) fn list_limit(&self) -> u32 {
        self.limit.min(PAGE_MAX)
    }
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
    /// The identity that the execution ran for.
    pub identity: Option<Identity>,
    /// The edge that accepted the request. `None` in rows of an older codexec.
    pub edge: Option<Edge>,
    /// The agent that the client named.
    pub agent: Option<String>,
}
