//! The queue of requests that wait for a worker.
//!
//! All identities share the queue. One identity cannot fill it, and the requests of an identity wait
//! for each other before they wait for those of others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use codexec_types::Identity;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::ExecError;

/// An identity may have at most this many waiting requests for each free position in the queue. So
/// one identity alone takes three quarters of the queue, and there is always room for another.
const WAITING_PER_FREE: usize = 3;

/// Permits to run a guest, and the requests that wait for one.
pub(crate) struct WorkerQueue {
    permits: Arc<Semaphore>,
    /// The number of permits.
    max: usize,
    /// The number of positions in the queue.
    positions: usize,
    patience: Duration,
    waiting: Mutex<HashMap<Identity, IdentityQueue>>,
}

/// The waiting requests of one identity.
struct IdentityQueue {
    waiting: usize,
    /// Held by the request that is the next one of its identity. Permits are given in the order in
    /// which requests ask for them, so identities take turns.
    turn: Arc<Semaphore>,
}

/// A permit to run now, or a position in the queue.
pub struct QueueTicket(TicketState);

enum TicketState {
    Running(OwnedSemaphorePermit),
    Queued(QueuedRequest),
}

/// A position in the queue. Dropping it frees the position.
struct QueuedRequest {
    queue: Arc<WorkerQueue>,
    identity: Identity,
    turn: Arc<Semaphore>,
    /// The number of requests that waited before this one.
    queued: usize,
}

impl WorkerQueue {
    pub(crate) fn new(max: usize, positions: usize, patience: Duration) -> WorkerQueue {
        let permits = Arc::new(Semaphore::new(max));
        WorkerQueue { permits, max, positions, patience, waiting: Mutex::default() }
    }

    /// Returns the number of running guests and of waiting requests.
    pub(crate) fn load(&self) -> (usize, usize) {
        (self.max - self.permits.available_permits(), count_waiting(&self.lock_waiting()))
    }

    /// Takes a permit or a position in the queue. Returns at once, with `Busy` when the queue or
    /// the identity's share of it is full.
    ///
    /// THREAT[RES-12]: a client that sends many requests does not keep others from running theirs.
    pub(crate) fn take_ticket(
        self: &Arc<Self>,
        identity: &Identity,
    ) -> Result<QueueTicket, ExecError> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(QueueTicket(TicketState::Running(permit)));
        }
        let mut waiting = self.lock_waiting();
        let queued = self.check_share(&waiting, identity)?;
        let own = waiting.entry(identity.clone()).or_insert_with(IdentityQueue::new);
        own.waiting += 1;
        let (queue, identity, turn) = (Arc::clone(self), identity.clone(), Arc::clone(&own.turn));
        Ok(QueueTicket(TicketState::Queued(QueuedRequest { queue, identity, turn, queued })))
    }

    /// Fails if a request of the identity would find neither a permit nor a position.
    pub(crate) fn check(&self, identity: &Identity) -> Result<(), ExecError> {
        match self.permits.available_permits() {
            0 => self.check_share(&self.lock_waiting(), identity).map(drop),
            _ => Ok(()),
        }
    }

    /// Returns the number of waiting requests, if there is a position for one more of the identity.
    fn check_share(
        &self,
        waiting: &HashMap<Identity, IdentityQueue>,
        identity: &Identity,
    ) -> Result<usize, ExecError> {
        let queued = count_waiting(waiting);
        let own = waiting.get(identity).map_or(0, |own| own.waiting);
        let free = self.positions.saturating_sub(queued);
        match own >= free.saturating_mul(WAITING_PER_FREE) {
            true => Err(self.busy_error(queued)),
            false => Ok(queued),
        }
    }

    /// Waits until the ticket's turn has come.
    pub(crate) async fn acquire(
        &self,
        ticket: QueueTicket,
    ) -> Result<OwnedSemaphorePermit, ExecError> {
        let request = match ticket.0 {
            TicketState::Running(permit) => return Ok(permit),
            TicketState::Queued(request) => request,
        };
        let wait = async {
            let _turn = request.turn.acquire().await.ok()?;
            Arc::clone(&self.permits).acquire_owned().await.ok()
        };
        let permit = timeout(self.patience, wait).await.ok().flatten();
        permit.ok_or_else(|| self.busy_error(request.queued))
    }

    /// Refuses all waiting and future requests.
    pub(crate) fn close(&self) {
        self.permits.close();
    }

    fn busy_error(&self, queued: usize) -> ExecError {
        ExecError::Busy { cap: self.max, queued, retry_after: self.patience }
    }

    /// Ignores poisoning: no critical section here can leave the data half changed.
    fn lock_waiting(&self) -> MutexGuard<'_, HashMap<Identity, IdentityQueue>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IdentityQueue {
    fn new() -> IdentityQueue {
        IdentityQueue { waiting: 0, turn: Arc::new(Semaphore::new(1)) }
    }
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        let mut waiting = self.queue.lock_waiting();
        if let Some(own) = waiting.get_mut(&self.identity) {
            own.waiting -= 1;
            if own.waiting == 0 {
                waiting.remove(&self.identity);
            }
        }
    }
}

fn count_waiting(waiting: &HashMap<Identity, IdentityQueue>) -> usize {
    waiting.values().map(|own| own.waiting).sum()
}

#[cfg(test)]
mod tests;
