//! The pool of waiting slots of one kind of worker.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use codexec_sandbox::{Cgroups, Layer, LayerLimits, MissingLayer, Mounter, Posture};
use tokio::sync::{Notify, OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::memory::MemoryGuard;
use crate::slot::{BusySlot, Slot};
use crate::worker_kind::WorkerKind;
use crate::zygote::{Zygote, run_blocking};
use crate::{ExecError, Settings};

/// The number of requests without a directory of the user after which a pool no longer prepares its
/// workers for one.
const UNUSED_STAGES: u8 = 8;

/// How long a slot beyond the warm ones stays open without a guest.
const LINGER: Duration = Duration::from_secs(10);

/// State that all pools share.
pub(crate) struct HostResources {
    pub(crate) settings: Settings,
    cgroups: OnceCell<Result<Cgroups, MissingLayer>>,
    mounter: OnceCell<Arc<Mounter>>,
    /// Kills guests that hold too much memory.
    pub(crate) guard: MemoryGuard,
    /// Set at shutdown: a slot that cannot be refilled is then no error.
    is_closed: AtomicBool,
}

/// The workers of one engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLoad {
    pub name: &'static str,
    /// Workers that wait for a guest.
    pub waiting: usize,
    /// Workers with a guest, those of sessions included.
    pub busy: usize,
}

pub(crate) struct Pool {
    kind: WorkerKind,
    resources: Arc<HostResources>,
    /// Replaced by an empty cell when the zygote has failed.
    zygote: Mutex<Arc<OnceCell<Zygote>>>,
    /// Each slot with the time it became idle. The longest idle slot is used first, because a new
    /// one may still be warming up.
    idle: Mutex<VecDeque<(Slot, Instant)>>,
    /// Notified when a slot becomes idle.
    is_kept: Notify,
    /// A permit for each slot: idle, busy or being refilled. Without it, every request that comes
    /// while slots are being refilled would open another one.
    room: Arc<Semaphore>,
    /// The posture of the slot that was opened last.
    posture: Mutex<Option<Posture>>,
    is_trimming: AtomicBool,
    /// The number of further workers that are prepared for a directory of the user.
    stages_left: AtomicU8,
    /// Incremented by `renew`. Slots of an earlier generation are not reused.
    generation: AtomicU64,
    /// The number of leases.
    busy: AtomicUsize,
}

impl HostResources {
    pub(crate) fn new(settings: Settings) -> HostResources {
        let (cgroups, mounter) = (OnceCell::new(), OnceCell::new());
        let is_closed = AtomicBool::new(false);
        HostResources { settings, cgroups, mounter, guard: MemoryGuard::default(), is_closed }
    }

    pub(crate) async fn cgroups(&self) -> Result<&Cgroups, MissingLayer> {
        let missing = |reason: String| MissingLayer { layer: Layer::Cgroup, reason };
        let find = || async {
            let found = tokio::task::spawn_blocking(Cgroups::find).await;
            found
                .map_err(|error| missing(error.to_string()))?
                .map_err(|error| missing(error.to_string()))
        };
        self.cgroups.get_or_init(find).await.as_ref().map_err(Clone::clone)
    }

    /// Returns the limits on what guests write in a directory of the user.
    pub(crate) fn layer_limits(&self) -> LayerLimits {
        let files = &self.settings.files;
        LayerLimits { max_bytes: files.max_bytes, max_files: files.max_files }
    }

    /// Notes that the host is ending, so that workers that fail to start are no surprise.
    pub(crate) fn begin_close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Removes the cgroups, if there are any, and kills the processes in them.
    pub(crate) async fn close(&self) {
        self.begin_close();
        if let Some(Ok(cgroups)) = self.cgroups.get() {
            let cgroups = cgroups.clone();
            let _ = tokio::task::spawn_blocking(move || cgroups.close()).await;
        }
    }

    pub(crate) async fn mounter(&self) -> Result<Arc<Mounter>, ExecError> {
        let start = || async {
            let (program, role) = (self.settings.program.clone(), self.settings.mounter_role);
            run_blocking(move || Ok(Arc::new(Mounter::start(&program, role)?))).await
        };
        self.mounter.get_or_try_init(start).await.cloned()
    }
}

impl Pool {
    pub(crate) fn new(kind: WorkerKind, resources: Arc<HostResources>) -> Pool {
        let (zygote, idle) = (Mutex::default(), Mutex::default());
        let settings = &resources.settings;
        let room = settings.max.max(kind.warm_workers(settings.warm)).max(1);
        Pool {
            kind,
            zygote,
            idle,
            is_kept: Notify::new(),
            posture: Mutex::default(),
            room: Arc::new(Semaphore::new(room)),
            resources,
            is_trimming: AtomicBool::new(false),
            stages_left: AtomicU8::new(0),
            generation: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
        }
    }

    pub(crate) async fn warm(self: &Arc<Self>) -> Result<(), ExecError> {
        while self.lock_idle().len() < self.warm_slots() {
            // Slots that are busy or being refilled become idle by themselves.
            let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else { break };
            let slot = self.open(Some(permit)).await?;
            self.keep(slot);
        }
        Ok(())
    }

    /// Fills the pool after a slot has left it for long. Not awaited: every step has a timeout.
    pub(crate) fn warm_in_background(self: &Arc<Self>) {
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = pool.warm().await
                && !pool.resources.is_closing()
            {
                tracing::warn!(%error, "cannot refill the worker pool");
            }
        });
    }

    /// Sessions pass no permit: the server bounds their number itself.
    pub(crate) fn lease(self: &Arc<Self>, permit: Option<OwnedSemaphorePermit>) -> PoolLease {
        self.busy.fetch_add(1, Ordering::Relaxed);
        PoolLease { pool: Arc::clone(self), _permit: permit }
    }

    /// Returns how many workers wait for a guest, and how many have one.
    pub(crate) fn load(&self) -> PoolLoad {
        let (waiting, busy) = (self.lock_idle().len(), self.busy.load(Ordering::Relaxed));
        PoolLoad { name: self.kind.name(), waiting, busy }
    }

    /// Takes an idle slot, or opens one. Waits while there are as many slots as there may be: then
    /// one is being refilled, because those with a guest are fewer.
    pub(crate) async fn take_slot(&self) -> Result<Slot, ExecError> {
        loop {
            if let Some(slot) = self.take_idle() {
                return Ok(slot);
            }
            tokio::select! {
                permit = Arc::clone(&self.room).acquire_owned() => {
                    let permit = permit.map_err(io::Error::other)?;
                    return self.open(Some(permit)).await;
                }
                () = self.is_kept.notified() => {}
            }
        }
    }

    /// Takes or opens a slot that leaves the pool. Never waits for executions: the server bounds
    /// the number of sessions itself.
    pub(crate) async fn take_slot_for_session(&self) -> Result<Slot, ExecError> {
        match self.take_idle() {
            Some(slot) => Ok(slot.leave_pool()),
            None => self.open(None).await,
        }
    }

    fn take_idle(&self) -> Option<Slot> {
        let mut idle = self.lock_idle();
        std::iter::from_fn(|| idle.pop_front()).map(|(slot, _)| slot).find(Slot::is_alive)
    }

    /// Returns which layers protect a guest, by building a worker if there is none. While all slots
    /// are in use, the last known answer counts: a question must not wait for guests.
    pub(crate) async fn posture(self: &Arc<Self>) -> Result<Posture, ExecError> {
        let known = lock(&self.posture).clone();
        if let (Some(known), 0, true) =
            (known, self.room.available_permits(), self.lock_idle().is_empty())
        {
            return Ok(known);
        }
        let slot = self.take_slot().await?;
        let posture = slot.posture().clone();
        self.keep(slot);
        Ok(posture)
    }

    /// Notes whether a request works in a directory of the user. Preparing workers for a directory
    /// pays only if the next requests have one too.
    pub(crate) fn note_request(&self, has_directory: bool) {
        let left = self.stages_left.load(Ordering::Relaxed);
        let left = if has_directory { UNUSED_STAGES } else { left.saturating_sub(1) };
        self.stages_left.store(left, Ordering::Relaxed);
    }

    /// Drops the zygote and all idle slots, because the rootfs that guests get has changed.
    pub(crate) fn renew(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        *lock(&self.zygote) = Arc::default();
        let old = std::mem::take(&mut *self.lock_idle());
        drop(old);
    }

    /// Keeps an idle slot, unless it is out of date or there are too many.
    pub(crate) fn keep(self: &Arc<Self>, mut slot: Slot) {
        if slot.generation() != self.generation.load(Ordering::Relaxed)
            || !slot.has_room(&self.room)
        {
            return;
        }
        let mut idle = self.lock_idle();
        idle.push_back((slot, Instant::now()));
        let is_many = idle.len() > self.warm_slots();
        drop(idle);
        self.is_kept.notify_one();
        if is_many && !self.is_trimming.swap(true, Ordering::Relaxed) {
            tokio::spawn(trim(Arc::downgrade(self)));
        }
    }

    async fn open(&self, permit: Option<OwnedSemaphorePermit>) -> Result<Slot, ExecError> {
        let begun = Instant::now();
        let generation = self.generation.load(Ordering::Relaxed);
        let zygote = lock(&self.zygote).clone();
        let opened = self.open_in(&zygote).await.map(|slot| slot.in_pool(generation, permit));
        if let Err(ExecError::Start(_)) = &opened {
            // A zygote that failed is replaced, whatever the cause.
            let mut current = lock(&self.zygote);
            if Arc::ptr_eq(&current, &zygote) {
                *current = Arc::default();
            }
        }
        if let Ok(slot) = &opened {
            *lock(&self.posture) = Some(slot.posture().clone());
        }
        let (kind, ok) = (self.kind, opened.is_ok());
        tracing::debug!(?kind, took = ?begun.elapsed(), ok, "slot opened");
        opened
    }

    async fn open_in(&self, zygote: &OnceCell<Zygote>) -> Result<Slot, ExecError> {
        let settings = &self.resources.settings;
        let cgroups = self.resources.cgroups().await;
        let start = || Zygote::start(self.kind, settings, cgroups.is_ok());
        let zygote = zygote.get_or_try_init(start).await?;
        self.resources.guard.start()?;
        Slot::open(zygote, settings.limits, cgroups).await
    }

    fn warm_slots(&self) -> usize {
        self.kind.warm_workers(self.resources.settings.warm)
    }

    fn lock_idle(&self) -> MutexGuard<'_, VecDeque<(Slot, Instant)>> {
        lock(&self.idle)
    }
}

/// A run's permit, and the pool that its slot returns to.
pub(crate) struct PoolLease {
    pool: Arc<Pool>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Drop for PoolLease {
    fn drop(&mut self) {
        self.pool.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PoolLease {
    pub(crate) fn resources(&self) -> &Arc<HostResources> {
        &self.pool.resources
    }

    pub(crate) fn guard(&self) -> &MemoryGuard {
        &self.pool.resources.guard
    }

    /// Puts a fresh worker into the slot, in the background, so that the reply does not wait for
    /// it.
    ///
    /// THREAT[LEAK-1]: only the slot is reused; the worker served one guest and is dead.
    pub(crate) fn give_back(&self, busy: BusySlot) {
        let pool = Arc::clone(&self.pool);
        // Not awaited: every step of the refill has a timeout.
        tokio::spawn(async move {
            // The reply is written first: the keeper would compete with its reader for the cores.
            tokio::task::yield_now().await;
            match busy.refill().await {
                Ok(mut slot) => {
                    if pool.stages_left.load(Ordering::Relaxed) > 0
                        && let Err(error) = slot.prepare_stage(pool.resources.layer_limits())
                    {
                        tracing::warn!(%error, "cannot prepare a worker for a directory");
                    }
                    pool.keep(slot);
                }
                Err(_) if pool.resources.is_closing() => {}
                Err(error) => tracing::warn!(%error, "cannot refill a worker slot"),
            }
        });
    }
}

/// Ignores poisoning: no critical section here can leave the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes the slots that have been idle for a while after a burst. Ends when only the warm slots
/// are left, or when the pool is dropped.
async fn trim(pool: Weak<Pool>) {
    loop {
        tokio::time::sleep(LINGER).await;
        let Some(pool) = pool.upgrade() else { return };
        let warm = pool.warm_slots();
        let mut idle = pool.lock_idle();
        let many = idle.len().saturating_sub(warm);
        let old = idle.iter().take(many).take_while(|(_, since)| since.elapsed() >= LINGER).count();
        let closed: Vec<_> = idle.drain(..old).collect();
        if idle.len() <= warm {
            pool.is_trimming.store(false, Ordering::Relaxed);
            return;
        }
        drop((idle, closed));
    }
}
