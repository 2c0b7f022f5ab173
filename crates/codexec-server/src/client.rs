//! Whoever asks for something.

use codexec_gateway::Caller;
use codexec_types::{Context, Grant, Principal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::Progress;
use crate::inside::{Inside, Scope};

/// Whoever asks, and how they hear of what comes of it.
#[derive(Clone)]
pub struct Client {
    pub principal: Principal,
    /// What they say about themselves; for records only.
    pub context: Context,
    /// Whom an upstream may ask.
    pub caller: Caller,
    pub cancel: CancellationToken,
    pub progress: watch::Sender<Progress>,
    /// Nobody's context is to be saved: texts are not cut.
    pub takes_all: bool,
    /// The code that asks, where it is code.
    pub(crate) inside: Option<Inside>,
}

impl Client {
    /// The user of this process, with nobody who could be asked.
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

    /// How others know them: by what they say, or by whose they are.
    pub(crate) fn name(&self) -> &str {
        self.context.agent_id.as_deref().unwrap_or(self.principal.as_str())
    }

    /// True for the client's own requests, and for code that the user gave this.
    pub(crate) fn may(&self, grant: Grant) -> bool {
        self.inside.as_ref().is_none_or(|inside| inside.grants.has(grant))
    }

    /// What sessions that this code opens belong to. `None` where it is not code that asks.
    pub(crate) fn scope(&self) -> Option<&Scope> {
        self.inside.as_ref().map(|inside| &inside.scope)
    }

    /// Held while something is done that the code which asks must not leave half done.
    pub(crate) fn begin(&self) -> Option<TaskTrackerToken> {
        self.inside.as_ref().map(Inside::begin)
    }

    /// The same one, asking from inside an execution of theirs. What is asked ends with it.
    pub(crate) fn asking_from(&self, inside: Inside) -> Client {
        Client {
            cancel: self.cancel.child_token(),
            progress: watch::Sender::new(Progress::default()),
            inside: Some(inside),
            ..self.clone()
        }
    }
}
