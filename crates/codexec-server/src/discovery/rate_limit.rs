use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use codexec_types::Identity;

pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// Maximum number of clients with a count of their own. Beyond that, new clients share one count.
const MAX_CLIENTS: usize = 1_000;

/// Recent requests of each client; the entry `None` is the count that clients beyond
/// [`MAX_CLIENTS`] share. A new execution does not reset the rate limit.
#[derive(Default)]
pub(crate) struct DiscoveryRateLimit(Mutex<HashMap<Option<Identity>, ClientRequests>>);

#[derive(Default)]
struct ClientRequests {
    moments: VecDeque<Instant>,
    /// True since a request was refused, until the next one is accepted.
    is_refused: bool,
}

/// The rate limit was exceeded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RateLimited {
    pub(super) wait: Duration,
    /// True for the first refusal after an accepted request. The following ones are not recorded.
    pub(super) is_first: bool,
}

impl DiscoveryRateLimit {
    /// Counts a request, or returns how long to wait if the client has made `max_requests` in the
    /// last minute.
    pub(super) fn count(
        &self,
        client: &Identity,
        max_requests: usize,
        now: Instant,
    ) -> Result<(), RateLimited> {
        let client = Some(client.clone());
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&client) {
            clients.retain(|_, asked| asked.moments.back().is_some_and(|at| is_recent(*at, now)));
        }
        let is_full = clients.len() >= MAX_CLIENTS && !clients.contains_key(&client);
        let client = client.filter(|_| !is_full);
        let ClientRequests { moments, is_refused } = clients.entry(client).or_default();
        while moments.front().is_some_and(|first| !is_recent(*first, now)) {
            moments.pop_front();
        }
        match moments.front() {
            Some(first) if moments.len() >= max_requests => {
                let wait = WINDOW.saturating_sub(now.saturating_duration_since(*first));
                let is_first = !std::mem::replace(is_refused, true);
                Err(RateLimited { wait, is_first })
            }
            _ => {
                moments.push_back(now);
                *is_refused = false;
                Ok(())
            }
        }
    }
}

fn is_recent(moment: Instant, now: Instant) -> bool {
    now.saturating_duration_since(moment) < WINDOW
}

#[cfg(test)]
mod tests;
