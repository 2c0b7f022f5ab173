//! THREAT[UP-9]: limits the concurrent calls of a server, and queues the others in order of
//! arrival.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use codexec_mcp_config::ServerOptions;
use codexec_telemetry::{Histogram, HistogramCounts};
use tokio::{
    sync::{Semaphore, SemaphorePermit, TryAcquireError},
    time::{Instant, timeout_at},
};

use crate::GatewaySettings;

/// Concurrent calls that each server may make however busy the others are: hanging servers can
/// exhaust the shared limit, but not this reserve.
const RESERVED_CALLS: usize = 4;
/// The memory limit for the arguments of all calls that run at or wait for one server.
const ARGUMENT_KIB: u32 = 24 << 10;
/// Smaller arguments are limited by the number of calls only.
const SMALL_BYTES: usize = 16 << 10;
/// The bounds of the histogram of waits.
const WAIT_BOUNDS_MS: [u64; 8] = [100, 500, 1_000, 2_500, 5_000, 10_000, 15_000, 30_000];

pub(crate) struct Gate {
    calls: Semaphore,
    size: usize,
    reserved: Semaphore,
    argument_kib: Semaphore,
    queue: usize,
    queue_wait: Duration,
    waiting: AtomicUsize,
    waits: Histogram,
}

/// Why a call may not wait, or stopped waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueRefusal {
    /// The limit on concurrent calls.
    pub(crate) size: usize,
    pub(crate) waiting: usize,
    /// `None`: the queue was full.
    pub(crate) waited: Option<Duration>,
}

impl Gate {
    pub(crate) fn new(settings: &GatewaySettings, narrow: &ServerOptions) -> Gate {
        let size = narrow.calls_at_once.unwrap_or(settings.calls_at_once);
        let size = size.clamp(1, Semaphore::MAX_PERMITS);
        Gate {
            calls: Semaphore::new(size),
            size,
            reserved: Semaphore::new(RESERVED_CALLS),
            argument_kib: Semaphore::new(ARGUMENT_KIB as usize),
            queue: settings.queue,
            queue_wait: settings.queue_wait,
            waiting: AtomicUsize::new(0),
            waits: Histogram::new(&WAIT_BOUNDS_MS),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.size.saturating_sub(self.calls.available_permits())
    }

    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns how long the calls that had to wait did so, with and without success.
    pub(crate) fn waits(&self) -> HistogramCounts {
        self.waits.snapshot()
    }

    /// Acquires one of this server's concurrent calls, in order of arrival.
    pub(crate) async fn acquire_call(&self) -> Result<SemaphorePermit<'_>, QueueRefusal> {
        match self.calls.try_acquire() {
            Ok(call) => return Ok(call),
            // The semaphore is never closed; without a permit the call waits.
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {}
        }
        self.wait_in_queue(self.calls.acquire()).await
    }

    /// Acquires one of the calls that all servers share, or one of this server's reserve.
    pub(crate) async fn acquire_shared_call<'a>(
        &'a self,
        shared: &'a Semaphore,
    ) -> Result<SemaphorePermit<'a>, QueueRefusal> {
        if let Ok(call) = self.reserved.try_acquire() {
            return Ok(call);
        }
        if let Ok(call) = shared.try_acquire() {
            return Ok(call);
        }
        let either = async {
            tokio::select! {
                biased;
                call = self.reserved.acquire() => call,
                call = shared.acquire() => call,
            }
        };
        self.wait_in_queue(either).await
    }

    /// Reserves memory for arguments of this size; `None` if they are small.
    pub(crate) async fn reserve_argument_memory(
        &self,
        bytes: usize,
    ) -> Result<Option<SemaphorePermit<'_>>, QueueRefusal> {
        if bytes <= SMALL_BYTES {
            return Ok(None);
        }
        let kib = u32::try_from(bytes >> 10).unwrap_or(ARGUMENT_KIB).min(ARGUMENT_KIB);
        if let Ok(memory) = self.argument_kib.try_acquire_many(kib) {
            return Ok(Some(memory));
        }
        self.wait_in_queue(self.argument_kib.acquire_many(kib)).await.map(Some)
    }

    async fn wait_in_queue<T, E>(
        &self,
        permit: impl Future<Output = Result<T, E>>,
    ) -> Result<T, QueueRefusal> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _queued = QueuedCall(&self.waiting);
        let refused = |waited| QueueRefusal { size: self.size, waiting: before, waited };
        if before >= self.queue {
            return Err(refused(None));
        }
        let begun = Instant::now();
        let permit = timeout_at(begun + self.queue_wait, permit).await;
        self.waits.count(begun.elapsed());
        match permit {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(refused(Some(self.queue_wait))),
        }
    }
}

/// A waiting call, counted until dropped.
struct QueuedCall<'a>(&'a AtomicUsize);

impl Drop for QueuedCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
