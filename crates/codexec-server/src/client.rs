//! The client of a request.

use codexec_gateway::Caller;
use codexec_types::{Grant, Principal, RequestOrigin};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::Progress;
use crate::outer_execution::{OuterExecution, SessionScope};

/// The client of a request, with the means to cancel it and to follow its progress.
#[derive(Clone)]
pub struct Client {
    pub principal: Principal,
    /// The client's description of itself; only for records.
    pub context: RequestOrigin,
    /// Receives the elicitation requests of upstreams.
    pub caller: Caller,
    pub cancel: CancellationToken,
    pub progress: watch::Sender<Progress>,
    /// True if texts are not cut, because no agent's context has to be saved.
    pub takes_all: bool,
    /// The execution whose code makes the request, if code makes it.
    pub(crate) outer: Option<OuterExecution>,
}

impl Client {
    /// Returns the user of this process, without elicitation.
    pub fn local() -> Client {
        Client {
            principal: Principal::local(),
            context: RequestOrigin::default(),
            caller: Caller::default(),
            cancel: CancellationToken::new(),
            progress: watch::Sender::new(Progress::default()),
            takes_all: false,
            outer: None,
        }
    }

    /// Returns the name for records: the agent's id, or else the principal.
    pub(crate) fn name(&self) -> &str {
        self.context.agent_id.as_deref().unwrap_or(self.principal.as_str())
    }

    /// True for the client's own requests, and for code that has the grant.
    pub(crate) fn may(&self, grant: Grant) -> bool {
        self.outer.as_ref().is_none_or(|outer| outer.grants.has(grant))
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

    /// Returns the same client for requests from inside an execution. They are cancelled with it.
    pub(crate) fn nested_in(&self, outer: OuterExecution) -> Client {
        Client {
            cancel: self.cancel.child_token(),
            progress: watch::Sender::new(Progress::default()),
            outer: Some(outer),
            ..self.clone()
        }
    }
}
