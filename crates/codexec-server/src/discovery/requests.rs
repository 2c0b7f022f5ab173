use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use codexec_types::Principal;

/// How many requests a client has in any such time.
pub(super) const MOST: usize = 30;
pub(super) const WINDOW: Duration = Duration::from_secs(60);

/// How many clients are remembered. With more than that, all who are new share one count.
const MAX_CLIENTS: usize = 1_000;

/// When each client asked, as far back as it matters. Outlives executions: a new one gives no new
/// requests.
#[derive(Default)]
pub(crate) struct Requests(Mutex<HashMap<Principal, Asked>>);

#[derive(Default)]
struct Asked {
    moments: VecDeque<Instant>,
    /// Since the last one that was met.
    is_refused: bool,
}

/// One too many.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany {
    pub(super) wait: Duration,
    /// Since one was met. Code that asks on and on is told so each time, but not written down.
    pub(super) is_first: bool,
}

impl Requests {
    /// Counts one; or says how long to wait.
    pub(super) fn count(&self, client: &Principal, now: Instant) -> Result<(), TooMany> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(client) {
            clients.retain(|_, asked| asked.moments.back().is_some_and(|at| is_recent(*at, now)));
        }
        let crowd = || Principal::named("");
        let is_full = clients.len() >= MAX_CLIENTS && !clients.contains_key(client);
        let client = if is_full { crowd() } else { client.clone() };
        let Asked { moments, is_refused } = clients.entry(client).or_default();
        while moments.front().is_some_and(|first| !is_recent(*first, now)) {
            moments.pop_front();
        }
        match moments.front() {
            Some(first) if moments.len() >= MOST => {
                let wait = WINDOW.saturating_sub(now.saturating_duration_since(*first));
                let is_first = !std::mem::replace(is_refused, true);
                Err(TooMany { wait, is_first })
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
