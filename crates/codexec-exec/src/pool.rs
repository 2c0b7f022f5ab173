//! Slots of one engine that wait for guests.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use codexec_sandbox::{Cgroups, Layer, Missing, Mounter};
use tokio::sync::{OnceCell, OwnedSemaphorePermit};
use tokio::time::Instant;

use crate::engine::Engine;
use crate::memory::Guard;
use crate::slot::{Busy, Slot};
use crate::zygote::{Zygote, blocking};
use crate::{ExecError, Settings};

/// How long a slot beyond the warm ones waits for a guest.
const LINGER: Duration = Duration::from_secs(10);

/// What all pools share.
pub(crate) struct Machine {
    pub(crate) settings: Settings,
    cgroups: OnceCell<Result<Cgroups, Missing>>,
    mounter: OnceCell<Arc<Mounter>>,
    /// Ends guests that hold too much memory.
    pub(crate) guard: Guard,
    /// No worker is wanted any more.
    is_closed: AtomicBool,
}

pub(crate) struct Pool {
    engine: Engine,
    machine: Arc<Machine>,
    /// Replaced by an empty one when the zygote has failed.
    zygote: Mutex<Arc<OnceCell<Zygote>>>,
    /// Each with the time it began to wait. The one that has waited longest is used first: a new
    /// one may still be warming up.
    idle: Mutex<VecDeque<(Slot, Instant)>>,
    is_trimming: AtomicBool,
    /// Counts the renewals; slots of an earlier time are not used again.
    time: AtomicU64,
}

impl Machine {
    pub(crate) fn new(settings: Settings) -> Machine {
        let (cgroups, mounter) = (OnceCell::new(), OnceCell::new());
        let is_closed = AtomicBool::new(false);
        Machine { settings, cgroups, mounter, guard: Guard::default(), is_closed }
    }

    pub(crate) async fn cgroups(&self) -> Result<&Cgroups, Missing> {
        let missing = |reason: String| Missing { layer: Layer::Cgroup, reason };
        let find = || async {
            let found = tokio::task::spawn_blocking(Cgroups::find).await;
            found
                .map_err(|error| missing(error.to_string()))?
                .map_err(|error| missing(error.to_string()))
        };
        self.cgroups.get_or_init(find).await.as_ref().map_err(Clone::clone)
    }

    /// Removes the cgroups, if there are any, and ends what is in them.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        if let Some(Ok(cgroups)) = self.cgroups.get() {
            let cgroups = cgroups.clone();
            let _ = tokio::task::spawn_blocking(move || cgroups.close()).await;
        }
    }

    pub(crate) async fn mounter(&self) -> Result<Arc<Mounter>, ExecError> {
        let start = || async {
            let (program, role) = (self.settings.program.clone(), self.settings.mounter_role);
            blocking(move || Ok(Arc::new(Mounter::start(&program, role)?))).await
        };
        self.mounter.get_or_try_init(start).await.cloned()
    }
}

impl Pool {
    pub(crate) fn new(engine: Engine, machine: Arc<Machine>) -> Pool {
        let (zygote, idle) = (Mutex::default(), Mutex::default());
        Pool {
            engine,
            machine,
            zygote,
            idle,
            is_trimming: AtomicBool::new(false),
            time: AtomicU64::new(0),
        }
    }

    pub(crate) async fn warm(self: &Arc<Self>) -> Result<(), ExecError> {
        while self.idle().len() < self.warm_slots() {
            let slot = self.open().await?;
            self.keep(slot);
        }
        Ok(())
    }

    /// Sessions have no permit: they are counted elsewhere.
    pub(crate) fn hold(self: &Arc<Self>, permit: Option<OwnedSemaphorePermit>) -> Hold {
        Hold { pool: Arc::clone(self), _permit: permit }
    }

    pub(crate) async fn slot(&self) -> Result<Slot, ExecError> {
        loop {
            let waiting = self.idle().pop_front();
            match waiting.map(|(slot, _)| slot) {
                Some(slot) if slot.is_alive() => return Ok(slot),
                Some(dead) => drop(dead),
                None => return self.open().await,
            }
        }
    }

    /// What guests find in their room has changed: the next ones get new rooms.
    pub(crate) fn renew(&self) {
        self.time.fetch_add(1, Ordering::Relaxed);
        *lock(&self.zygote) = Arc::default();
        let old = std::mem::take(&mut *self.idle());
        drop(old);
    }

    pub(crate) fn keep(self: &Arc<Self>, slot: Slot) {
        if slot.time() != self.time.load(Ordering::Relaxed) {
            return;
        }
        let mut idle = self.idle();
        idle.push_back((slot, Instant::now()));
        let is_many = idle.len() > self.warm_slots();
        drop(idle);
        if is_many && !self.is_trimming.swap(true, Ordering::Relaxed) {
            tokio::spawn(trim(Arc::downgrade(self)));
        }
    }

    async fn open(&self) -> Result<Slot, ExecError> {
        let begun = Instant::now();
        let time = self.time.load(Ordering::Relaxed);
        let zygote = lock(&self.zygote).clone();
        let opened = self.open_in(&zygote).await.map(|slot| slot.of(time));
        if let Err(ExecError::Start(_)) = &opened {
            // Whatever is wrong with it, the next one is a new one.
            let mut current = lock(&self.zygote);
            if Arc::ptr_eq(&current, &zygote) {
                *current = Arc::default();
            }
        }
        let (engine, ok) = (self.engine, opened.is_ok());
        tracing::debug!(?engine, took = ?begun.elapsed(), ok, "slot opened");
        opened
    }

    async fn open_in(&self, zygote: &OnceCell<Zygote>) -> Result<Slot, ExecError> {
        let settings = &self.machine.settings;
        let cgroups = self.machine.cgroups().await;
        let start = || Zygote::start(self.engine, settings, cgroups.is_ok());
        let zygote = zygote.get_or_try_init(start).await?;
        self.machine.guard.start()?;
        Slot::open(zygote, settings.limits, cgroups).await
    }

    fn warm_slots(&self) -> usize {
        self.engine.warm(self.machine.settings.warm)
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<(Slot, Instant)>> {
        lock(&self.idle)
    }
}

/// A run's place among all guests, and the pool that its slot goes back to.
pub(crate) struct Hold {
    pool: Arc<Pool>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Hold {
    pub(crate) fn machine(&self) -> &Arc<Machine> {
        &self.pool.machine
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.pool.machine.guard
    }

    /// Puts a fresh worker into the slot, off the path of the answer.
    ///
    /// THREAT[LEAK-1]: what is given back is the slot; the worker was one guest's and is dead.
    pub(crate) fn give_back(&self, busy: Busy) {
        let pool = Arc::clone(&self.pool);
        // Ends by itself: every step of it is bounded.
        tokio::spawn(async move {
            match busy.refill().await {
                Ok(slot) => pool.keep(slot),
                Err(_) if pool.machine.is_closed.load(Ordering::Relaxed) => {}
                Err(error) => tracing::warn!(%error, "a slot could not be filled again"),
            }
        });
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
        let warm = pool.warm_slots();
        let mut idle = pool.idle();
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
