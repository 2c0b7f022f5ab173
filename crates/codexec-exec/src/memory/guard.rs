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

use codexec_sandbox::{WorkerHandles, hurry_thread};

use super::Meter;

/// How fast one core can fill memory, and the number of cores that saturate memory bandwidth.
const FILL_BYTES_PER_SECOND: u64 = 4 << 30;
const FILLING_CORES: u64 = 4;
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);
/// For idle sessions where measuring takes more than a single read.
const LONGEST_IDLE: Duration = Duration::from_millis(250);
/// Between two measurements of a guest, the thread pauses this many times as long as one took.
const LOOK_SHARE: u32 = 8;
/// Inaccuracy of the kernel's counters, and what the start of a guest needs.
const TOLERANCE_BYTES: u64 = 2 << 20;

static FILL_RATE: LazyLock<u64> = LazyLock::new(|| {
    let cores = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    FILL_BYTES_PER_SECOND * cores.min(FILLING_CORES)
});

/// The guard thread, which ends when this is dropped.
#[derive(Default)]
pub(crate) struct Guard(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    guests: Vec<Arc<Guest>>,
    is_started: bool,
    is_over: bool,
    /// When the thread wakes up without a notification.
    sleeps_until: Option<Instant>,
}

struct Guest {
    meter: Arc<Meter>,
    worker: Arc<WorkerHandles>,
    limit_bytes: AtomicU64,
    is_idle: AtomicBool,
    is_over: AtomicBool,
    due: Mutex<Instant>,
}

/// A guest under guard. Dropping this ends the guard, not the guest.
pub(crate) struct Guarded {
    shared: Arc<Shared>,
    guest: Arc<Guest>,
}

impl Guard {
    /// Starts the thread unless it runs. Must be called before the first guest is guarded.
    pub(crate) fn start(&self) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        if !state.is_started {
            let shared = Arc::clone(&self.0);
            thread::Builder::new().name("memory".to_owned()).spawn(move || {
                hurry_thread();
                serve(&shared);
            })?;
            state.is_started = true;
        }
        Ok(())
    }

    /// Kills the worker as soon as its guest holds more than this.
    pub(crate) fn watch(
        &self,
        meter: Arc<Meter>,
        worker: Arc<WorkerHandles>,
        limit_bytes: u64,
    ) -> Guarded {
        let due = Instant::now() + pause(limit_bytes, LONGEST);
        let guest = Arc::new(Guest {
            meter,
            worker,
            limit_bytes: limit_bytes.into(),
            is_idle: false.into(),
            is_over: false.into(),
            due: Mutex::new(due),
        });
        let mut state = lock(&self.0.state);
        state.guests.push(Arc::clone(&guest));
        let sleeps_longer = state.sleeps_until.is_none_or(|until| until > due);
        drop(state);
        if sleeps_longer {
            self.0.changed.notify_one();
        }
        Guarded { shared: Arc::clone(&self.0), guest }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        lock(&self.0.state).is_over = true;
        self.0.changed.notify_one();
    }
}

impl Guarded {
    /// True if the guest was killed because it held too much.
    pub(crate) fn was_over(&self) -> bool {
        self.guest.is_over.load(Ordering::Acquire)
    }

    pub(crate) fn limit_to(&self, limit_bytes: u64) {
        self.guest.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        self.guest.is_idle.store(false, Ordering::Relaxed);
    }

    /// Marks the guest as idle: no cell runs.
    pub(crate) fn rest(&self) {
        self.guest.is_idle.store(true, Ordering::Relaxed);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        lock(&self.shared.state).guests.retain(|guest| !Arc::ptr_eq(guest, &self.guest));
    }
}

fn serve(shared: &Shared) {
    let mut state = lock(&shared.state);
    while !state.is_over {
        let now = Instant::now();
        let is_due = |guest: &&Arc<Guest>| *lock(&guest.due) <= now;
        let due: Vec<Arc<Guest>> = state.guests.iter().filter(is_due).cloned().collect();
        if due.is_empty() {
            let next = state.guests.iter().map(|guest| *lock(&guest.due)).min();
            state.sleeps_until = next;
            state = sleep(&shared.changed, state, next.map(|next| next - now));
            continue;
        }
        drop(state);
        due.iter().for_each(|guest| guest.look());
        // Dropped without the lock: this may be the last handle of a guest that has ended.
        drop(due);
        state = lock(&shared.state);
    }
}

fn sleep<'a>(
    changed: &Condvar,
    state: MutexGuard<'a, State>,
    time: Option<Duration>,
) -> MutexGuard<'a, State> {
    match time {
        Some(time) => changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0,
        None => changed.wait(state).unwrap_or_else(PoisonError::into_inner),
    }
}

impl Guest {
    fn look(&self) {
        let begun = Instant::now();
        let limit_bytes = self.limit_bytes.load(Ordering::Relaxed) + TOLERANCE_BYTES;
        let held_bytes = self.meter.at_most_bytes(limit_bytes);
        if held_bytes > limit_bytes && self.meter.is_over(limit_bytes) {
            self.is_over.store(true, Ordering::Release);
            self.worker.kill();
        }
        let is_idle = self.is_idle.load(Ordering::Relaxed) && !self.meter.has_group();
        let longest = if is_idle { LONGEST_IDLE } else { LONGEST };
        let took = begun.elapsed();
        let pause = pause(limit_bytes.saturating_sub(held_bytes), longest).max(took * LOOK_SHARE);
        *lock(&self.due) = begun + took + pause;
    }
}

/// Returns the shortest time in which a guest can fill its remaining memory.
fn pause(room_bytes: u64, longest: Duration) -> Duration {
    let micros = room_bytes.saturating_mul(1_000_000) / *FILL_RATE;
    Duration::from_micros(micros).clamp(SHORTEST, longest)
}

/// Ignores poisoning: no critical section here can leave the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
