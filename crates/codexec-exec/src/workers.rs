//! The entry point of this crate: caps the number of guests and picks the pool of their language.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use codexec_sandbox::{EscapeAttempt, Posture};
use codexec_types::{Admitted, Language, WorkerJob, WorkingDir};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::engine::Engine;
use crate::pool::{HostResources, Pool};
use crate::run::WaitingBody;
use crate::slot::Slot;
use crate::stdin::GuestStdin;
use crate::user_dir::UserDir;
use crate::{ExecError, Run, Settings};

/// Timeout of the sandbox probe.
const PROBE: Duration = Duration::from_secs(10);

/// Starts guests, at most `Settings::max` at once. Cheap to clone.
#[derive(Clone)]
pub struct Workers(pub(crate) Arc<WorkersInner>);

pub(crate) struct WorkersInner {
    pub(crate) resources: Arc<HostResources>,
    js: Arc<Pool>,
    python: Arc<Pool>,
    bash: Arc<Pool>,
    node: Arc<Pool>,
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Workers {
    /// Creates the pools. No process is started yet.
    pub fn new(settings: Settings) -> Workers {
        let permits = Arc::new(Semaphore::new(settings.max));
        let resources = Arc::new(HostResources::new(settings));
        let pool = |engine| Arc::new(Pool::new(engine, Arc::clone(&resources)));
        Workers(Arc::new(WorkersInner {
            js: pool(Engine::Js),
            python: pool(Engine::Python),
            bash: pool(Engine::Bash),
            node: pool(Engine::Node),
            permits,
            waiting: AtomicUsize::new(0),
            resources,
        }))
    }

    /// Fills the pools, so that the first guest does not wait. A language without an interpreter on
    /// this machine is skipped.
    pub async fn warm(&self) -> Result<(), ExecError> {
        self.0.js.warm().await?;
        for pool in [&self.0.python, &self.0.bash] {
            match pool.warm().await {
                Err(error @ ExecError::Interpreter(_)) => {
                    tracing::debug!(%error, "pool not warmed: no interpreter")
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Kills all workers and removes their cgroups. No worker starts afterwards.
    pub async fn close(&self) {
        self.0.resources.begin_close();
        self.0.permits.close();
        for pool in [&self.0.js, &self.0.python, &self.0.bash, &self.0.node] {
            pool.renew();
        }
        self.0.resources.close().await;
    }

    /// Returns which sandbox layers protect a guest of the built-in engine, by building a worker.
    pub async fn posture(&self) -> Result<Posture, ExecError> {
        self.posture_of(Language::TypeScript).await
    }

    /// Returns which sandbox layers protect a guest in this language, by building a worker.
    pub async fn posture_of(&self, language: Language) -> Result<Posture, ExecError> {
        let pool = self.0.pool(Engine::of(language));
        let slot = pool.take_slot().await?;
        let posture = slot.posture().clone();
        pool.keep(slot);
        Ok(posture)
    }

    /// Runs the probe guest, which tries to escape. `Settings::role` must be the probe's role.
    pub async fn probe(&self) -> Result<Vec<EscapeAttempt>, ExecError> {
        let (_busy, worker) = self.0.js.take_slot().await?.occupy();
        let mut line = Vec::new();
        let read = worker.read_to_end(&mut line);
        timeout(PROBE, read).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(serde_json::from_slice(&line).map_err(io::Error::from)?)
    }

    /// Returns the number of running guests and of requests that wait for a worker.
    pub fn load(&self) -> (usize, usize) {
        let running = self.0.resources.settings.max - self.0.permits.available_permits();
        (running, self.0.waiting.load(Ordering::Relaxed))
    }

    /// Takes a worker permit or a position in the queue. Returns at once, with `Busy` when the
    /// queue is full.
    pub fn take_ticket(&self) -> Result<QueueTicket, ExecError> {
        if let Ok(permit) = Arc::clone(&self.0.permits).try_acquire_owned() {
            return Ok(QueueTicket(QueueState::Running(permit)));
        }
        let settings = &self.0.resources.settings;
        let queued = self.0.waiting.fetch_add(1, Ordering::Relaxed);
        let place = QueuedRequest(Arc::clone(&self.0));
        if queued >= settings.queue {
            return Err(self.0.busy_error(queued));
        }
        Ok(QueueTicket(QueueState::Queued(place, queued)))
    }

    /// Starts the guest when a worker is free. `servers` are the names that the guest may see.
    pub async fn start(&self, admitted: &Admitted, servers: Vec<String>) -> Result<Run, ExecError> {
        self.start_with_ticket(self.take_ticket()?, admitted, servers, None).await
    }

    /// Like [`Workers::start`], for a request that is already admitted to the queue. `stdin` is for
    /// programs; guests of the built-in engine have none.
    pub async fn start_with_ticket(
        &self,
        place: QueueTicket,
        admitted: &Admitted,
        servers: Vec<String>,
        stdin: Option<GuestStdin>,
    ) -> Result<Run, ExecError> {
        let permit = self.0.acquire_permit(place).await?;
        let pool = self.0.pool(Engine::of(admitted.language()));
        pool.note_request(admitted.working_dir().is_some());
        let slot = pool.take_slot().await?;
        let (mut slot, dir) = match admitted.working_dir() {
            Some(wanted) => self.mount_working_dir(slot, wanted).await?,
            None => (slot, None),
        };
        let has_stdin = stdin.is_some_and(|stdin| slot.feed_stdin(stdin));
        let limits = admitted.limits();
        let job = WorkerJob {
            language: admitted.language(),
            code: admitted.code().to_owned(),
            input: admitted.input().clone(),
            args: admitted.args().to_vec(),
            is_session: false,
            has_stdin,
            servers,
            memory_bytes: limits.memory_bytes,
        };
        let waiting = WaitingBody::in_slot(slot, dir, pool.lease(Some(permit)), &job);
        Ok(Run::new(job, limits, waiting))
    }

    /// Mounts the requested working directory in a waiting worker. The worker's keeper prepares
    /// everything else while the directory itself is mounted.
    pub(crate) async fn mount_working_dir(
        &self,
        mut slot: Slot,
        wanted: &WorkingDir,
    ) -> Result<(Slot, Option<UserDir>), ExecError> {
        let resources = &self.0.resources;
        let mounter = resources.mounter().await?;
        slot.prepare_stage(resources.layer_limits())?;
        let Some(overlay_sink) = slot.take_overlay_sink() else { return Ok((slot, None)) };
        let overlay = UserDir::overlay(wanted, resources);
        let (dir, slot) = tokio::join!(
            UserDir::open(wanted, resources, mounter, overlay_sink),
            slot.mount(overlay)
        );
        let dir = dir?;
        Ok((slot?, Some(dir)))
    }
}

impl WorkersInner {
    pub(crate) fn pool(&self, engine: Engine) -> &Arc<Pool> {
        match engine {
            Engine::Js => &self.js,
            Engine::Python => &self.python,
            Engine::Bash => &self.bash,
            Engine::Node => &self.node,
        }
    }

    async fn acquire_permit(&self, place: QueueTicket) -> Result<OwnedSemaphorePermit, ExecError> {
        let (place, queued) = match place.0 {
            QueueState::Running(permit) => return Ok(permit),
            QueueState::Queued(place, queued) => (place, queued),
        };
        let patience = self.resources.settings.queue_wait;
        let wait = timeout(patience, Arc::clone(&self.permits).acquire_owned());
        let permit =
            wait.await.map_err(|_| self.busy_error(queued))?.map_err(|_| self.busy_error(queued));
        drop(place);
        permit
    }

    fn busy_error(&self, queued: usize) -> ExecError {
        let settings = &self.resources.settings;
        ExecError::Busy { cap: settings.max, queued, retry_after: settings.queue_wait }
    }
}

/// A permit to run now, or a position in the queue.
pub struct QueueTicket(QueueState);

enum QueueState {
    Running(OwnedSemaphorePermit),
    /// With the number of requests ahead of it.
    Queued(QueuedRequest, usize),
}

/// One request in the queue. Leaves the queue when dropped.
struct QueuedRequest(Arc<WorkersInner>);

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
