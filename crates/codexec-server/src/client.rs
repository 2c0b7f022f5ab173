//! The client of a request.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use codexec_gateway::Caller;
use codexec_store::ReadScope;
use codexec_telemetry::TraceContext;
use codexec_types::{FileChanges, Grant, Identity, OuterLimits, Principal, RequestOrigin};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::outer_execution::{MAX_DEPTH, OuterExecution, SessionScope};
use crate::{Connection, ExecuteError, ExecutionEvent, LiveStreams, Progress, TextBudget};

/// The client of a request, with the means to cancel it and to follow its progress.
#[derive(Clone)]
pub struct Client {
    pub connection: Arc<Connection>,
    /// The client's description of itself; only for records.
    pub context: RequestOrigin,
    /// Receives the elicitation requests of upstreams.
    pub caller: Caller,
    pub cancel: CancellationToken,
    pub progress: watch::Sender<Progress>,
    pub streams: LiveStreams,
    /// Receives the events of the execution that the request starts.
    pub watcher: Option<mpsc::Sender<ExecutionEvent>>,
    /// The span that the request belongs to.
    pub trace: Option<TraceContext>,
    /// The execution whose code makes the request, if code makes it.
    pub(crate) outer: Option<OuterExecution>,
}

impl Client {
    /// Creates a client of the connection, without elicitation.
    pub fn new(connection: Arc<Connection>) -> Client {
        Client {
            connection,
            context: RequestOrigin::default(),
            caller: Caller::default(),
            cancel: CancellationToken::new(),
            progress: watch::Sender::new(Progress::default()),
            streams: LiveStreams::default(),
            watcher: None,
            trace: None,
            outer: None,
        }
    }

    /// Returns the principal of the request: that of the connection, with the agent that the client
    /// names.
    pub fn principal(&self) -> Principal {
        self.connection.principal().for_agent(self.context.agent_id.as_deref())
    }

    /// Returns the owner of what the request creates.
    pub(crate) fn identity(&self) -> &Identity {
        self.connection.principal().identity()
    }

    /// Returns the name for audit logs: the agent's id, or else the identity.
    pub fn name(&self) -> String {
        self.context.agent_id.clone().unwrap_or_else(|| self.identity().to_string())
    }

    /// Returns the records that the request may read.
    ///
    /// THREAT[OWN-3]: code reads the logs of its own client only.
    pub fn read_scope(&self) -> ReadScope {
        match self.may(Grant::AllLogs) {
            true => self.connection.read_scope(),
            false => ReadScope::RanHereFor(self.identity().clone()),
        }
    }

    /// True for the client's own requests, and for code that has the grant.
    pub(crate) fn may(&self, grant: Grant) -> bool {
        self.outer.as_ref().is_none_or(|outer| outer.reach.grants().has(grant))
    }

    /// Returns the limits of the calling code for the code that it starts, if code makes the
    /// request.
    pub(crate) fn outer_limits(&self) -> Option<OuterLimits<'_>> {
        self.outer.as_ref().map(|outer| OuterLimits {
            reach: &outer.reach,
            wall: outer.until.saturating_duration_since(Instant::now()),
            tool_calls: outer.tool_calls,
        })
    }

    /// Fails if the calling code is nested too deeply to start code.
    pub(crate) fn check_depth(&self) -> Result<(), ExecuteError> {
        match &self.outer {
            Some(outer) if outer.depth > MAX_DEPTH => Err(ExecuteError::TooDeep),
            Some(_) | None => Ok(()),
        }
    }

    /// Charges bytes that are already stored to the calling code, if code makes the request.
    pub(crate) fn spend_allowance(&self, bytes: u64) {
        if let Some(outer) = &self.outer {
            outer.allowance.spend(bytes);
        }
    }

    /// Returns how much of a text the requester gets. Code gets texts in full.
    pub(crate) fn text_budget(&self) -> Option<TextBudget> {
        self.outer.is_none().then_some(self.connection.budget())
    }

    /// Returns the scope that owns the sessions which the code opens, or `None` if this is not
    /// code.
    pub(crate) fn scope(&self) -> Option<&SessionScope> {
        self.outer.as_ref().map(|outer| &outer.scope)
    }

    /// Returns a token that delays the end of the calling code, so that it leaves nothing half
    /// done.
    pub(crate) fn delay_end(&self) -> Option<TaskTrackerToken> {
        self.outer.as_ref().map(OuterExecution::delay_end)
    }

    /// Records the changes that nested code made in a directory of the user's; nothing if `dir` is
    /// `None`.
    ///
    /// THREAT[FIL-16]: the reply to the client reports what nested code did, whatever the calling
    /// code says about it.
    pub(crate) fn note_nested_changes(&self, dir: Option<&Path>, changes: &FileChanges) {
        if let Some(outer) = &self.outer {
            let noted = outer.nested_changes.lock();
            noted.unwrap_or_else(PoisonError::into_inner).append_nested(dir, changes);
        }
    }

    /// Takes what was noted, or `None` if that is nothing.
    pub(crate) fn take_nested_changes(&self) -> Option<Box<FileChanges>> {
        let noted = self.outer.as_ref()?.nested_changes.lock();
        let changes = std::mem::take(&mut *noted.unwrap_or_else(PoisonError::into_inner));
        (!changes.is_empty()).then(|| Box::new(changes))
    }

    /// Returns the same client for requests from inside an execution. They are cancelled with it.
    pub(crate) fn nested_in(&self, outer: OuterExecution, trace: Option<TraceContext>) -> Client {
        Client {
            trace,
            caller: self.caller.clone().in_trace(trace),
            cancel: self.cancel.child_token(),
            progress: watch::Sender::new(Progress::default()),
            streams: LiveStreams::default(),
            watcher: None,
            outer: Some(outer),
            ..self.clone()
        }
    }
}
