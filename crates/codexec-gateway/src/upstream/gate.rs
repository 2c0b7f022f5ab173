//! THREAT[UP-9]: limits the concurrent calls of a server, and queues the others in order of
//! arrival.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit, TryAcquireError},
    time::{Instant, timeout_at},
};

use crate::{Narrow, Settings};

/// Concurrent calls that each server may make however busy the others are: hanging servers can
/// exhaust the shared limit, but not this reserve.
const OWN: usize = 4;
/// The memory limit for the arguments of all calls that run at or wait for one server.
const ROOM_KIB: u32 = 24 << 10;
/// Smaller arguments are limited by the number of calls only.
const LIGHT_BYTES: usize = 16 << 10;

pub(crate) struct Gate {
    places: Semaphore,
    size: usize,
    own: Semaphore,
    room: Semaphore,
    queue: usize,
    patience: Duration,
    waiting: AtomicUsize,
}

/// Why a call may not wait, or stopped waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crowded {
    /// The limit on concurrent calls.
    pub(crate) size: usize,
    pub(crate) waiting: usize,
    /// `None`: the queue was full.
    pub(crate) waited: Option<Duration>,
}

impl Gate {
    pub(crate) fn new(settings: &Settings, narrow: &Narrow) -> Gate {
        let size = narrow.calls_at_once.unwrap_or(settings.calls_at_once);
        let size = size.clamp(1, Semaphore::MAX_PERMITS);
        Gate {
            places: Semaphore::new(size),
            size,
            own: Semaphore::new(OWN),
            room: Semaphore::new(ROOM_KIB as usize),
            queue: settings.queue,
            patience: settings.queue_wait,
            waiting: AtomicUsize::new(0),
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.size.saturating_sub(self.places.available_permits())
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Acquires one of this server's concurrent calls, in order of arrival.
    pub(crate) async fn place(&self) -> Result<SemaphorePermit<'_>, Crowded> {
        match self.places.try_acquire() {
            Ok(place) => return Ok(place),
            // The semaphore is never closed; without a permit the call waits.
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {}
        }
        self.queued(self.places.acquire()).await
    }

    /// Acquires one of the calls that all servers share, or one of this server's reserve.
    pub(crate) async fn share<'a>(
        &'a self,
        common: &'a Semaphore,
    ) -> Result<SemaphorePermit<'a>, Crowded> {
        if let Ok(share) = self.own.try_acquire() {
            return Ok(share);
        }
        if let Ok(share) = common.try_acquire() {
            return Ok(share);
        }
        let either = async {
            tokio::select! {
                biased;
                share = self.own.acquire() => share,
                share = common.acquire() => share,
            }
        };
        self.queued(either).await
    }

    /// Reserves memory for arguments of this size; `None` if they are small.
    pub(crate) async fn room(&self, bytes: usize) -> Result<Option<SemaphorePermit<'_>>, Crowded> {
        if bytes <= LIGHT_BYTES {
            return Ok(None);
        }
        let kib = u32::try_from(bytes >> 10).unwrap_or(ROOM_KIB).min(ROOM_KIB);
        if let Ok(room) = self.room.try_acquire_many(kib) {
            return Ok(Some(room));
        }
        self.queued(self.room.acquire_many(kib)).await.map(Some)
    }

    async fn queued<T, E>(&self, turn: impl Future<Output = Result<T, E>>) -> Result<T, Crowded> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _one = Waiting(&self.waiting);
        let crowded = |waited| Crowded { size: self.size, waiting: before, waited };
        if before >= self.queue {
            return Err(crowded(None));
        }
        match timeout_at(Instant::now() + self.patience, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(crowded(Some(self.patience))),
        }
    }
}

/// A waiting call, counted until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
