//! THREAT[UP-9]: how many calls a server works on at a time, and how many wait for it, in the order
//! they came.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit, TryAcquireError},
    time::{Instant, timeout_at},
};

use crate::{Narrow, Settings};

/// Calls that a server may have under way however busy the others are: servers that hang can
/// use up what all share, but not what each has for itself.
const OWN: usize = 4;
/// What the arguments of all calls that are with one server, or wait for it, may weigh.
const ROOM_KIB: u32 = 24 << 10;
/// Lighter ones are bounded by their number.
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

/// Why a call may not even wait, or waited in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Crowded {
    /// Calls under way at most.
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

    /// A place at this server, after those who came before.
    pub(crate) async fn place(&self) -> Result<SemaphorePermit<'_>, Crowded> {
        match self.places.try_acquire() {
            Ok(place) => return Ok(place),
            // Never closed; and who finds no place waits.
            Err(TryAcquireError::NoPermits | TryAcquireError::Closed) => {}
        }
        self.queued(self.places.acquire()).await
    }

    /// Leave to use what all servers share, or what this one has for itself.
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

    /// Room for arguments of this weight; `None` where they need none.
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

/// Counted as waiting until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
