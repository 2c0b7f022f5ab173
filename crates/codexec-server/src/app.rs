use std::sync::Arc;
use std::time::Duration;

use codexec_exec::Workers;
use codexec_exec::packages::Packages;
use codexec_gateway::{Gateway, ServerHealth};
use codexec_scripts::Library;
use codexec_telemetry::Tracer;
use codexec_types::{Identity, Language, ToolFilter};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::ExecutionCounts;
use crate::{
    Connection, ExecuteError, LiveSettings, OpenSessions, Records, RunningExecutions,
    SessionSettings,
};

/// The parts of the server. One per process; what belongs to one client is in its
/// [`Connection`](crate::Connection).
pub struct App {
    pub live_settings: LiveSettings,
    pub workers: Workers,
    pub gateway: Gateway,
    pub records: Arc<Records>,
    pub sessions: OpenSessions,
    pub scripts: Library,
    pub packages: Packages,
    /// What runs now.
    pub running: RunningExecutions,
    pub(crate) stopping: CancellationToken,
    pub(crate) executions: TaskTracker,
    pub(crate) execution_counts: ExecutionCounts,
    /// Records a span for each request and execution.
    pub tracer: Tracer,
}

/// Timeout for executions to end when the server stops.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

impl App {
    pub fn new(
        workers: Workers,
        gateway: Gateway,
        records: Records,
        sessions: SessionSettings,
        scripts: Library,
    ) -> App {
        let (stopping, executions) = (CancellationToken::new(), TaskTracker::new());
        let records = Arc::new(records);
        let sessions = OpenSessions::new(sessions, Arc::clone(&records));
        App {
            live_settings: LiveSettings::default(),
            packages: Packages::new(&workers),
            running: RunningExecutions::default(),
            workers,
            gateway,
            records,
            sessions,
            scripts,
            stopping,
            executions,
            execution_counts: ExecutionCounts::default(),
            tracer: Tracer::default(),
        }
    }

    /// Fails if an execution would find neither a worker nor a place in the queue, so that an edge
    /// can refuse it before anything is done for it. A language that is known is counted.
    pub fn check_queue(
        &self,
        identity: &Identity,
        language: Option<Language>,
    ) -> Result<(), ExecuteError> {
        let checked = self.workers.check_queue(identity);
        if let (Err(_), Some(language)) = (&checked, language) {
            drop(self.execution_counts.begin(language));
        }
        Ok(checked?)
    }

    /// Waits for the running executions, but not longer than `grace`.
    pub async fn finish_executions(&self, grace: Duration) {
        self.executions.close();
        let _ = tokio::time::timeout(grace, self.executions.wait()).await;
    }

    /// Stops everything: executions first, each with its record, then sessions, then upstreams and
    /// waiting workers.
    pub async fn shutdown(&self) {
        self.stopping.cancel();
        self.executions.close();
        let ended = async {
            self.executions.wait().await;
            self.sessions.end_all("server_stopped").await;
        };
        if tokio::time::timeout(DRAIN_TIMEOUT, ended).await.is_err() {
            tracing::warn!(
                "executions did not end in time; the next start marks them as interrupted"
            );
        }
        self.records.flush().await;
        tokio::join!(self.gateway.shutdown(), self.workers.close());
    }

    /// Returns the health of the servers that a client may know of.
    pub fn server_health(&self, connection: &Connection) -> Vec<ServerHealth> {
        let mut servers = self.gateway.health();
        servers.retain(|server| connection.sees_server(server.name.as_str()));
        servers
    }

    /// Returns the names of the servers that a filter allows.
    pub(crate) fn servers_in(&self, filter: &ToolFilter) -> Vec<String> {
        let names = self.gateway.server_names().into_iter();
        names
            .filter(|name| filter.allows_server(name.as_str()))
            .map(|name| name.as_str().to_owned())
            .collect()
    }
}
