//! Code that asks for something of ours: what it may reach, and what ends with it.

use std::sync::Arc;
use std::time::Instant;

use codexec_types::{Admitted, ExecutionId, Grants, SessionId, ToolFilter};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::allowance::Allowance;
use crate::discovery::Discovery;
use crate::execution_packages::ExecutionPackages;
use crate::{Client, ExecuteError};

/// How many executions may stand inside each other.
pub(crate) const MAX_DEPTH: u8 = 3;

/// An execution whose code asks. What it starts can do no more than itself.
#[derive(Clone)]
pub(crate) struct Inside {
    pub(crate) scope: Scope,
    pub(crate) tools: ToolFilter,
    /// What of ours it may do beside what is its own.
    pub(crate) grants: Grants,
    pub(crate) tool_calls: u32,
    /// How it learns of tools, if that is more than what it may call.
    pub(crate) discovery: Option<Arc<Discovery>>,
    /// When its own time is up.
    pub(crate) until: Instant,
    /// The sessions that wait for it to end, its own among them.
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) depth: u8,
    /// What it installs for itself, where it runs in no session.
    pub(crate) packages: Arc<ExecutionPackages>,
    /// What it may still make us keep.
    pub(crate) allowance: Arc<Allowance>,
    /// What it has begun and what has to be finished: executions, and sessions that open or close.
    begun: TaskTracker,
}

/// What sessions that code opens belong to: only its code uses them, and they end with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Execution(ExecutionId),
    /// For code in a session, which has all cells of it in common.
    Session(SessionId),
}

impl Scope {
    pub(crate) fn of(session: Option<&SessionId>, id: &ExecutionId) -> Scope {
        match session {
            Some(session) => Scope::Session(session.clone()),
            None => Scope::Execution(id.clone()),
        }
    }
}

impl Inside {
    /// Of an execution that this client has started.
    pub(crate) fn new(
        client: &Client,
        admitted: &Admitted,
        begun: Instant,
        scope: Scope,
        (discovery, packages): (Option<Arc<Discovery>>, Arc<ExecutionPackages>),
    ) -> Inside {
        let (mut sessions, depth, allowance) = match &client.inside {
            Some(outer) => (outer.sessions.clone(), outer.depth + 1, Arc::clone(&outer.allowance)),
            None => (Vec::new(), 1, Arc::default()),
        };
        if let Scope::Session(session) = &scope {
            sessions.push(session.clone());
        }
        Inside {
            scope,
            tools: admitted.tools().clone(),
            grants: admitted.grants(),
            tool_calls: admitted.limits().tool_calls,
            discovery,
            until: begun + admitted.limits().wall,
            sessions,
            depth,
            packages,
            allowance,
            begun: TaskTracker::new(),
        }
    }

    /// Held while something is done that the end of this execution waits for.
    pub(crate) fn begin(&self) -> tokio_util::task::task_tracker::TaskTrackerToken {
        self.begun.token()
    }

    /// THREAT[OWN-2]: what code has started ends before the code is said to have ended. Executions
    /// are cancelled and waited for, so that each has its end in the records; all else is dropped.
    pub(crate) async fn wind_up<F: Future>(
        &self,
        cancel: &CancellationToken,
        mut asks: FuturesUnordered<F>,
    ) {
        if asks.is_empty() {
            return;
        }
        cancel.cancel();
        self.begun.close();
        let answered = async { while asks.next().await.is_some() {} };
        tokio::select! {
            () = answered => {}
            () = self.begun.wait() => {}
        }
    }
}

/// THREAT[SES-7]: code that is started by code is held to what that is held to.
pub(crate) fn within(admitted: Admitted, client: &Client) -> Result<Admitted, ExecuteError> {
    let Some(inside) = &client.inside else { return Ok(admitted) };
    if inside.depth > MAX_DEPTH {
        return Err(ExecuteError::TooDeep);
    }
    let left = inside.until.saturating_duration_since(Instant::now());
    Ok(admitted.within(&inside.tools, left).started_by_code(inside.tool_calls, inside.grants))
}
