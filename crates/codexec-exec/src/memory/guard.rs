//! A thread that measures the memory of every guest and kills those that hold too much.
//!
//! THREAT[RES-8]: the next measurement comes before a guest can have filled its remaining memory,
//! so a guest exceeds its limit only by what it fills during the measurement itself. The thread has
//! no other work, so a busy server delays no measurement.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use codexec_sandbox::{WorkerHandles, raise_thread_priority};

use super::MemoryMeter;

/// How fast one core can fill memory, and the number of cores that saturate memory bandwidth.
const FILL_BYTES_PER_SECOND: u64 = 4 << 30;
const FILLING_CORES: u64 = 4;
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);
/// For idle sessions where measuring takes more than a single read.
const LONGEST_IDLE: Duration = Duration::from_millis(250);
/// Between two measurements of a guest, the thread pauses this many times as long as one took.
const PAUSE_FACTOR: u32 = 8;
/// Inaccuracy of the kernel's counters, and what the start of a guest needs.
const TOLERANCE_BYTES: u64 = 2 << 20;

static FILL_RATE: LazyLock<u64> = LazyLock::new(|| {
    let cores = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    FILL_BYTES_PER_SECOND * cores.min(FILLING_CORES)
});

/// The guard thread, which ends when this is dropped.
#[derive(Default)]
pub(crate) struct MemoryGuard(Arc<GuardShared>);

#[derive(Default)]
struct GuardShared {
    state: Mutex<GuardState>,
    changed: Condvar,
}

#[derive(Default)]
struct GuardState {
    guests: Vec<Arc<GuardedGuest>>,
    is_started: bool,
    is_closing: bool,
    /// When the thread wakes up without a notification.
    sleeps_until: Option<Instant>,
}

struct GuardedGuest {
    meter: Arc<MemoryMeter>,
    worker: Arc<WorkerHandles>,
    limit_bytes: AtomicU64,
    is_idle: AtomicBool,
    is_killed: AtomicBool,
    due: Mutex<Instant>,
}

/// A guest under guard. Dropping this ends the guard, not the guest.
pub(crate) struct GuardHandle {
    shared: Arc<GuardShared>,
    guest: Arc<GuardedGuest>,
}

impl MemoryGuard {
    /// Starts the thread unless it runs. Must be called before the first guest is guarded.
    pub(crate) fn start(&self) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        if !state.is_started {
            let shared = Arc::clone(&self.0);
            thread::Builder::new().name("memory".to_owned()).spawn(move || {
                raise_thread_priority();
                serve(&shared);
            })?;
            state.is_started = true;
        }
        Ok(())
    }

    /// Kills the worker as soon as its guest holds more than this.
    pub(crate) fn watch(
        &self,
        meter: Arc<MemoryMeter>,
        worker: Arc<WorkerHandles>,
        limit_bytes: u64,
    ) -> GuardHandle {
        let due = Instant::now() + shortest_fill_time(limit_bytes, LONGEST);
        let guest = Arc::new(GuardedGuest {
            meter,
            worker,
            limit_bytes: limit_bytes.into(),
            is_idle: false.into(),
            is_killed: false.into(),
            due: Mutex::new(due),
        });
        let mut state = lock(&self.0.state);
        state.guests.push(Arc::clone(&guest));
        let sleeps_longer = state.sleeps_until.is_none_or(|until| until > due);
        drop(state);
        if sleeps_longer {
            self.0.changed.notify_one();
        }
        GuardHandle { shared: Arc::clone(&self.0), guest }
    }
}

impl Drop for MemoryGuard {
    fn drop(&mut self) {
        lock(&self.0.state).is_closing = true;
        self.0.changed.notify_one();
    }
}

impl GuardHandle {
    /// True if the guest was killed because it held too much.
    pub(crate) fn was_killed(&self) -> bool {
        self.guest.is_killed.load(Ordering::Acquire)
    }

    pub(crate) fn set_limit(&self, limit_bytes: u64) {
        self.guest.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        self.guest.is_idle.store(false, Ordering::Relaxed);
    }

    /// Marks the guest as idle: no cell runs.
    pub(crate) fn set_idle(&self) {
        self.guest.is_idle.store(true, Ordering::Relaxed);
    }
}

impl Drop for GuardHandle {
    fn drop(&mut self) {
        lock(&self.shared.state).guests.retain(|guest| !Arc::ptr_eq(guest, &self.guest));
    }
}

fn serve(shared: &GuardShared) {
    let mut state = lock(&shared.state);
    while !state.is_closing {
        let now = Instant::now();
        let is_due = |guest: &&Arc<GuardedGuest>| *lock(&guest.due) <= now;
        let due: Vec<Arc<GuardedGuest>> = state.guests.iter().filter(is_due).cloned().collect();
        if due.is_empty() {
            let next = state.guests.iter().map(|guest| *lock(&guest.due)).min();
            state.sleeps_until = next;
            state = sleep(&shared.changed, state, next.map(|next| next - now));
            continue;
        }
        drop(state);
        due.iter().for_each(|guest| guest.check());
        // Dropped without the lock: this may be the last handle of a guest that has ended.
        drop(due);
        state = lock(&shared.state);
    }
}

fn sleep<'a>(
    changed: &Condvar,
    state: MutexGuard<'a, GuardState>,
    time: Option<Duration>,
) -> MutexGuard<'a, GuardState> {
    match time {
        Some(time) => changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0,
        None => changed.wait(state).unwrap_or_else(PoisonError::into_inner),
    }
}

impl GuardedGuest {
    fn check(&self) {
        let begun = Instant::now();
        let limit_bytes = self.limit_bytes.load(Ordering::Relaxed) + TOLERANCE_BYTES;
        let held_bytes = self.meter.at_most_bytes(limit_bytes);
        if held_bytes > limit_bytes && self.meter.exceeds(limit_bytes) {
            self.is_killed.store(true, Ordering::Release);
            self.worker.kill();
        }
        let is_idle = self.is_idle.load(Ordering::Relaxed) && !self.meter.has_group();
        let longest = if is_idle { LONGEST_IDLE } else { LONGEST };
        let took = begun.elapsed();
        let pause = shortest_fill_time(limit_bytes.saturating_sub(held_bytes), longest)
            .max(took * PAUSE_FACTOR);
        *lock(&self.due) = begun + took + pause;
    }
}

/// Returns the shortest time in which a guest can fill its remaining memory.
fn shortest_fill_time(left_bytes: u64, longest: Duration) -> Duration {
    let micros = left_bytes.saturating_mul(1_000_000) / *FILL_RATE;
    Duration::from_micros(micros).clamp(SHORTEST, longest)
}

/// Ignores poisoning: no critical section here can leave the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
