//! The client of a request.

use codexec_gateway::Caller;
use codexec_types::{Context, Grant, Principal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::Progress;
use crate::inside::{Inside, Scope};

/// The client of a request, with the means to cancel it and to follow its progress.
#[derive(Clone)]
pub struct Client {
    pub principal: Principal,
    /// What the client says about itself; only for records.
    pub context: Context,
    /// Receives the elicitation requests of upstreams.
    pub caller: Caller,
    pub cancel: CancellationToken,
    pub progress: watch::Sender<Progress>,
    /// True if texts are not cut, because no agent's context has to be saved.
    pub takes_all: bool,
    /// The execution whose code makes the request, if code makes it.
    pub(crate) inside: Option<Inside>,
}

impl Client {
    /// The user of this process, who cannot be asked anything.
    pub fn local() -> Client {
        Client {
            principal: Principal::local(),
            context: Context::default(),
            caller: Caller::default(),
            cancel: CancellationToken::new(),
            progress: watch::Sender::new(Progress::default()),
            takes_all: false,
            inside: None,
        }
    }

    /// Returns the name for records: the agent's id, or else the principal.
    pub(crate) fn name(&self) -> &str {
        self.context.agent_id.as_deref().unwrap_or(self.principal.as_str())
    }

    /// True for the client's own requests, and for code that has the grant.
    pub(crate) fn may(&self, grant: Grant) -> bool {
        self.inside.as_ref().is_none_or(|inside| inside.grants.has(grant))
    }

    /// Returns the scope that owns the sessions which the code opens, or `None` if this is not
    /// code.
    pub(crate) fn scope(&self) -> Option<&Scope> {
        self.inside.as_ref().map(|inside| &inside.scope)
    }

    /// Returns a token that delays the end of the calling code, so that it leaves nothing half
    /// done.
    pub(crate) fn begin(&self) -> Option<TaskTrackerToken> {
        self.inside.as_ref().map(Inside::begin)
    }

    /// Returns the same client for requests from inside an execution. They are cancelled with it.
    pub(crate) fn asking_from(&self, inside: Inside) -> Client {
        Client {
            cancel: self.cancel.child_token(),
            progress: watch::Sender::new(Progress::default()),
            inside: Some(inside),
            ..self.clone()
        }
    }
}
