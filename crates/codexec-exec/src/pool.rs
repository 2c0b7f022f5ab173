//! Slots that wait for guests, and the bound on how many there are.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use codexec_sandbox::{Attempt, Cgroups, Launch, Layer, Missing, Posture, ZygoteLink};
use codexec_types::{Admitted, Job, Limits};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use crate::slot::{Busy, Slot};
use crate::{ExecError, Run};

/// How long a slot beyond the warm ones waits for a guest.
const LINGER: Duration = Duration::from_secs(10);

/// How long the probe may take.
const PROBE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Settings {
    /// Our own binary: it starts itself again as the zygote.
    pub program: PathBuf,
    /// The argument that makes it the zygote.
    pub role: &'static str,
    /// What every guest gets. A request can narrow its own time and calls, the rest is fixed when
    /// its worker is made.
    pub limits: Limits,
    pub python: Python,
    /// By default the first `node` on `path`.
    pub node: Option<PathBuf>,
    /// Where interpreters are looked for: our own PATH.
    pub path: OsString,
    /// What guests find in their environment beside PATH, HOME, LANG and TERM.
    pub environment: Vec<(String, String)>,
    /// How many guests may run at once.
    pub max: usize,
    /// How many workers wait for one when nothing goes on.
    pub warm: usize,
    /// How many requests may wait for a worker, and how long.
    pub queue: usize,
    pub queue_wait: Duration,
    pub lowered: Vec<Layer>,
}

/// Which Python guests get.
#[derive(Clone, Debug, Default)]
pub struct Python {
    /// By default the first `python3` on the path.
    pub interpreter: Option<PathBuf>,
    /// A virtual environment; its interpreter is then the one.
    pub venv: Option<PathBuf>,
    /// Modules that are imported before any guest starts, where they are installed.
    pub preload: Vec<String>,
}

/// Starts guests. Cheap to clone.
#[derive(Clone)]
pub struct Workers(Arc<Pool>);

pub(crate) struct Pool {
    settings: Settings,
    launch: Launch,
    /// Replaced by an empty one when the zygote has failed.
    zygote: Mutex<Arc<OnceCell<ZygoteLink>>>,
    cgroups: OnceCell<Result<Cgroups, Missing>>,
    /// Each with the time it began to wait; the newest is used first.
    idle: Mutex<Vec<(Slot, Instant)>>,
    is_trimming: AtomicBool,
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Workers {
    /// Starts nothing yet.
    pub fn new(settings: Settings) -> Workers {
        Workers(Arc::new(Pool {
            launch: Launch::interpreter(settings.limits.memory_bytes, settings.lowered.clone()),
            permits: Arc::new(Semaphore::new(settings.max)),
            settings,
            zygote: Mutex::default(),
            cgroups: OnceCell::new(),
            idle: Mutex::default(),
            is_trimming: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
        }))
    }

    /// Fills the pool, so that the first guest does not wait.
    pub async fn warm(&self) -> Result<(), ExecError> {
        while self.0.idle().len() < self.0.settings.warm {
            let slot = self.0.open().await?;
            self.0.keep(slot);
        }
        Ok(())
    }

    /// What stands around a guest here, seen by building it.
    pub async fn posture(&self) -> Result<Posture, ExecError> {
        let slot = self.0.slot().await?;
        let posture = slot.posture().clone();
        self.0.keep(slot);
        Ok(posture)
    }

    /// Runs the guest that tries to get out; only where the role is that guest's.
    pub async fn probe(&self) -> Result<Vec<Attempt>, ExecError> {
        let (_busy, worker) = self.0.slot().await?.occupy();
        let mut line = Vec::new();
        let read = worker.said(&mut line);
        timeout(PROBE, read).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(serde_json::from_slice(&line).map_err(io::Error::from)?)
    }

    /// How many guests run, and how many requests wait for a worker.
    pub fn load(&self) -> (usize, usize) {
        let running = self.0.settings.max - self.0.permits.available_permits();
        (running, self.0.waiting.load(Ordering::Relaxed))
    }

    /// Starts the guest. `servers` are the names that it may see.
    pub async fn start(&self, admitted: &Admitted, servers: Vec<String>) -> Result<Run, ExecError> {
        let permit = self.0.permit().await?;
        let (busy, worker) = self.0.slot().await?.occupy();
        let limits = admitted.limits();
        let job = Job {
            language: admitted.language(),
            code: admitted.code().to_owned(),
            input: admitted.input().clone(),
            servers,
            memory_bytes: limits.memory_bytes,
        };
        Ok(Run::new(
            job,
            limits,
            worker,
            Hold { pool: Arc::clone(&self.0), busy: Some(busy), _permit: permit },
        ))
    }
}

/// A run's place in the pool, given back when the run has ended.
///
/// THREAT[LEAK-1]: what is given back is the slot; the worker was one guest's and is dead.
pub(crate) struct Hold {
    pool: Arc<Pool>,
    pub(crate) busy: Option<Busy>,
    _permit: OwnedSemaphorePermit,
}

impl Hold {
    /// Puts a fresh worker into the slot, off the path of the answer.
    pub(crate) fn release(&mut self) {
        let Some(busy) = self.busy.take() else { return };
        let pool = Arc::clone(&self.pool);
        // Ends by itself: every step of it is bounded.
        tokio::spawn(async move {
            match busy.refill().await {
                Ok(slot) => pool.keep(slot),
                Err(error) => tracing::warn!(%error, "a slot could not be filled again"),
            }
        });
    }
}

impl Pool {
    async fn permit(&self) -> Result<OwnedSemaphorePermit, ExecError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        let queued = self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Waiting(&self.waiting);
        let busy = || ExecError::Busy {
            cap: self.settings.max,
            queued,
            retry_after: self.settings.queue_wait,
        };
        if queued >= self.settings.queue {
            return Err(busy());
        }
        let wait = timeout(self.settings.queue_wait, Arc::clone(&self.permits).acquire_owned());
        let permit = wait.await.map_err(|_| busy())?.map_err(|_| busy());
        drop(place);
        permit
    }

    async fn slot(&self) -> Result<Slot, ExecError> {
        loop {
            let waiting = self.idle().pop();
            match waiting.map(|(slot, _)| slot) {
                Some(slot) if slot.is_alive() => return Ok(slot),
                Some(dead) => drop(dead),
                None => return self.open().await,
            }
        }
    }

    fn keep(self: &Arc<Self>, slot: Slot) {
        let mut idle = self.idle();
        idle.push((slot, Instant::now()));
        let is_many = idle.len() > self.settings.warm;
        drop(idle);
        if is_many && !self.is_trimming.swap(true, Ordering::Relaxed) {
            tokio::spawn(trim(Arc::downgrade(self)));
        }
    }

    async fn open(&self) -> Result<Slot, ExecError> {
        let begun = Instant::now();
        let zygote = lock(&self.zygote).clone();
        let opened = self.open_in(&zygote).await;
        if let Err(ExecError::Start(_)) = &opened {
            // Whatever is wrong with it, the next one is a new one.
            let mut current = lock(&self.zygote);
            if Arc::ptr_eq(&current, &zygote) {
                *current = Arc::default();
            }
        }
        tracing::debug!(took = ?begun.elapsed(), ok = opened.is_ok(), "slot opened");
        opened
    }

    async fn open_in(&self, zygote: &OnceCell<ZygoteLink>) -> Result<Slot, ExecError> {
        let start = || async {
            let (program, role) = (self.settings.program.clone(), self.settings.role);
            let start = move || ZygoteLink::start(&program, role);
            tokio::task::spawn_blocking(start).await.map_err(io::Error::other)?
        };
        let zygote = zygote.get_or_try_init(start).await?;
        let cgroups = self.cgroups().await;
        Slot::open(zygote, &self.launch, self.settings.limits.memory_bytes, cgroups).await
    }

    async fn cgroups(&self) -> Result<&Cgroups, Missing> {
        let missing = |reason: String| Missing { layer: Layer::Cgroup, reason };
        let find = || async {
            let found = tokio::task::spawn_blocking(Cgroups::find).await;
            found
                .map_err(|error| missing(error.to_string()))?
                .map_err(|error| missing(error.to_string()))
        };
        self.cgroups.get_or_init(find).await.as_ref().map_err(Clone::clone)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(Slot, Instant)>> {
        lock(&self.idle)
    }
}

/// Nothing under these locks can be left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// After a rush, closes the slots that nobody has needed for a while. Ends when only the warm
/// ones are left, or the pool is gone.
async fn trim(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(LINGER).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle();
        let many = idle.len().saturating_sub(pool.settings.warm);
        let old = idle.iter().take(many).take_while(|(_, since)| since.elapsed() >= LINGER).count();
        let closed: Vec<_> = idle.drain(..old).collect();
        if idle.len() <= pool.settings.warm {
            pool.is_trimming.store(false, Ordering::Relaxed);
            return;
        }
        drop((idle, closed));
    }
}

/// One request in the queue; leaves it when dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
