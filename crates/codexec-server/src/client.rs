//! Whoever asks for something.

use std::sync::Arc;
use std::time::Instant;

use codexec_gateway::Caller;
use codexec_types::{Context, Principal, SessionId, ToolFilter};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Progress;
use crate::allowance::Allowance;
use crate::discovery::Discovery;

/// How many executions may stand inside each other.
pub(crate) const MAX_DEPTH: u8 = 3;

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

/// An execution whose code asks. What it starts can do no more than itself.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) tools: ToolFilter,
    /// How it learns of tools, if that is more than what it may call.
    pub(crate) discovery: Option<Arc<Discovery>>,
    /// When its own time is up.
    pub(crate) until: Instant,
    /// The sessions that wait for it to end, its own among them.
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) is_in_session: bool,
    pub(crate) depth: u8,
    /// What it may still make us keep.
    pub(crate) allowance: Arc<Allowance>,
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
