//! The entry point of this crate.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{EscapeAttempt, Posture};
use codexec_types::{Admitted, Identity, Language};
use tokio::time::timeout;

use crate::placement::GuestPurpose;
use crate::pool::{HostResources, PoolLoad};
use crate::pools::Pools;
use crate::queue::{QueueTicket, WorkerQueue};
use crate::stdin::GuestStdin;
use crate::worker_kind::WorkerKind;
use crate::{ExecError, Run, Settings};

/// Timeout of the sandbox probe.
const PROBE: Duration = Duration::from_secs(10);

/// Starts guests, at most `Settings::max` at once. Cheap to clone.
#[derive(Clone)]
pub struct Workers(pub(crate) Arc<WorkersInner>);

pub(crate) struct WorkersInner {
    pub(crate) resources: Arc<HostResources>,
    pub(crate) pools: Pools,
    queue: Arc<WorkerQueue>,
}

impl Workers {
    /// Creates the pools. No process is started yet.
    pub fn new(settings: Settings) -> Workers {
        let queue = WorkerQueue::new(settings.max, settings.queue, settings.queue_wait);
        let resources = Arc::new(HostResources::new(settings));
        let pools = Pools::new(&resources);
        Workers(Arc::new(WorkersInner { pools, queue: Arc::new(queue), resources }))
    }

    /// Fills the pools, so that the first guest does not wait. A language without an interpreter on
    /// this machine is skipped.
    pub async fn warm(&self) -> Result<(), ExecError> {
        self.0.pools.warm().await
    }

    /// Kills all workers and removes their cgroups. No worker starts afterwards.
    pub async fn close(&self) {
        self.0.resources.begin_close();
        self.0.queue.close();
        self.0.pools.empty();
        self.0.resources.close().await;
    }

    /// Returns which sandbox layers protect a guest of the built-in engine, by building a worker.
    pub async fn posture(&self) -> Result<Posture, ExecError> {
        self.posture_of(Language::TypeScript).await
    }

    /// Returns which sandbox layers protect a guest in this language, by building a worker unless
    /// all are busy.
    pub async fn posture_of(&self, language: Language) -> Result<Posture, ExecError> {
        self.0.pools.of(WorkerKind::of(language)).posture().await
    }

    /// Runs the probe guest, which tries to escape. `Settings::role` must be the probe's role.
    pub async fn probe(&self) -> Result<Vec<EscapeAttempt>, ExecError> {
        let (_busy, worker) = self.0.pools.of(WorkerKind::Engine).take_slot().await?.occupy();
        let mut line = Vec::new();
        let read = worker.read_to_end(&mut line);
        timeout(PROBE, read).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(serde_json::from_slice(&line).map_err(io::Error::from)?)
    }

    /// Returns the number of running guests and of requests that wait for a worker.
    pub fn load(&self) -> (usize, usize) {
        self.0.queue.load()
    }

    /// Returns the greatest number of guests outside sessions, and the workers of each engine.
    pub fn pools(&self) -> (usize, [PoolLoad; 4]) {
        (self.0.resources.settings.max, self.0.pools.loads())
    }

    /// Fails if a request of the identity would find neither a worker nor a position in the queue.
    pub fn check_queue(&self, identity: &Identity) -> Result<(), ExecError> {
        self.0.queue.check(identity)
    }

    /// Takes a worker permit or a position in the queue. Returns at once, with `Busy` when the
    /// queue or the identity's share of it is full.
    pub fn take_ticket(&self, identity: &Identity) -> Result<QueueTicket, ExecError> {
        self.0.queue.take_ticket(identity)
    }

    /// Starts a guest of the local user when a worker is free. `servers` are the names that the guest may see.
    pub async fn start(&self, admitted: &Admitted, servers: Vec<String>) -> Result<Run, ExecError> {
        self.start_with_ticket(self.take_ticket(&Identity::LocalUser)?, admitted, servers, None)
            .await
    }

    /// Like [`Workers::start`], for a request that is already admitted to the queue. `stdin` is for
    /// programs; guests of the built-in engine have none.
    pub async fn start_with_ticket(
        &self,
        ticket: QueueTicket,
        admitted: &Admitted,
        servers: Vec<String>,
        stdin: Option<GuestStdin>,
    ) -> Result<Run, ExecError> {
        let permit = self.0.queue.acquire(ticket).await?;
        self.place(admitted, servers, GuestPurpose::Execution { permit, stdin }).await
    }

    /// Opens a session in the language and directory of this request. The request's code is not
    /// run: cells are sent with [`Run::send`]. `servers` are the names that the guest may see;
    /// `packages` is a directory that it sees read-only, including files added later.
    ///
    /// Sessions need no permit; the caller bounds their number.
    pub async fn open_session(
        &self,
        admitted: &Admitted,
        servers: Vec<String>,
        packages: Option<PathBuf>,
    ) -> Result<Run, ExecError> {
        self.place(admitted, servers, GuestPurpose::Session { packages }).await
    }
}
