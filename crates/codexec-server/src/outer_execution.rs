//! Requests from inside an execution: what its code may reach, and what ends with it.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use codexec_types::{Admitted, ExecutionId, FileChanges, Reach, SessionId};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Client;
use crate::allowance::Allowance;
use crate::discovery::DiscoveryRules;
use crate::execution_packages::ExecutionPackages;

/// Maximum nesting of executions.
pub(crate) const MAX_DEPTH: u8 = 3;

/// The execution whose code makes a request. What it starts can do no more than itself.
#[derive(Clone)]
pub(crate) struct OuterExecution {
    pub(crate) scope: SessionScope,
    pub(crate) reach: Reach,
    pub(crate) tool_calls: u32,
    /// The rules for searches of the code, if there are any.
    pub(crate) discovery: Option<Arc<DiscoveryRules>>,
    /// The deadline of the execution.
    pub(crate) until: Instant,
    /// The sessions that wait for the execution to end, including its own.
    pub(crate) sessions: Vec<SessionId>,
    pub(crate) depth: u8,
    /// Packages that the execution installs for itself, if it is not in a session.
    pub(crate) packages: Arc<ExecutionPackages>,
    /// The bytes that the execution may still store.
    pub(crate) allowance: Arc<Allowance>,
    /// Changes that nested executions made in the user's directories.
    pub(crate) nested_changes: Arc<Mutex<FileChanges>>,
    /// Counts what the execution has begun and must finish: executions, and sessions that are being
    /// opened or closed.
    tasks: TaskTracker,
}

/// The owner of sessions that code opens: only its code uses them, and they end with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionScope {
    Execution(ExecutionId),
    /// The session that the code runs in; all its cells share the scope.
    Session(SessionId),
}

impl SessionScope {
    pub(crate) fn of(session: Option<&SessionId>, id: &ExecutionId) -> SessionScope {
        match session {
            Some(session) => SessionScope::Session(session.clone()),
            None => SessionScope::Execution(id.clone()),
        }
    }
}

impl OuterExecution {
    /// Describes an execution that this client has started.
    pub(crate) fn new(
        client: &Client,
        admitted: &Admitted,
        started: Instant,
        scope: SessionScope,
        (discovery, packages): (Option<Arc<DiscoveryRules>>, Arc<ExecutionPackages>),
    ) -> OuterExecution {
        // Code that is started by code has the same rules.
        let inherited = || client.outer.as_ref()?.discovery.clone();
        let discovery = discovery.or_else(inherited);
        let (mut sessions, depth, allowance) = match &client.outer {
            Some(outer) => (outer.sessions.clone(), outer.depth + 1, Arc::clone(&outer.allowance)),
            None => (Vec::new(), 1, Arc::default()),
        };
        if let SessionScope::Session(session) = &scope {
            sessions.push(session.clone());
        }
        OuterExecution {
            scope,
            reach: admitted.reach().clone(),
            tool_calls: admitted.limits().tool_calls,
            discovery,
            until: started + admitted.limits().wall,
            sessions,
            depth,
            packages,
            allowance,
            nested_changes: Arc::default(),
            tasks: TaskTracker::new(),
        }
    }

    /// Returns a token. The end of this execution waits until it is dropped.
    pub(crate) fn delay_end(&self) -> tokio_util::task::task_tracker::TaskTrackerToken {
        self.tasks.token()
    }

    /// THREAT[OWN-2]: everything that code has started ends before the code's end is reported.
    /// Executions are cancelled and awaited, so that each one is recorded; everything else is
    /// dropped.
    pub(crate) async fn wind_up<F: Future>(
        &self,
        cancel: &CancellationToken,
        mut asks: FuturesUnordered<F>,
    ) {
        if asks.is_empty() {
            return;
        }
        cancel.cancel();
        self.tasks.close();
        let answered = async { while asks.next().await.is_some() {} };
        tokio::select! {
            () = answered => {}
            () = self.tasks.wait() => {}
        }
    }
}
