//! A server's word that its tools have changed: heard in the order in which it was said, before
//! any answer that follows it is passed on.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::sync::{Notify, watch};

/// How often a server said it, and how far we have followed.
#[derive(Debug)]
pub(super) struct Changes {
    said: AtomicU64,
    told: Notify,
    followed: watch::Sender<u64>,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes { said: AtomicU64::new(0), told: Notify::new(), followed: watch::Sender::new(0) }
    }
}

impl Changes {
    pub(super) fn heard(&self) {
        self.said.fetch_add(1, Ordering::AcqRel);
        self.told.notify_one();
    }

    /// Waits for the next time.
    pub(super) async fn next(&self) {
        while self.is_followed() {
            self.told.notified().await;
        }
    }

    /// How often it was said so far.
    pub(super) fn count(&self) -> u64 {
        self.said.load(Ordering::Acquire)
    }

    /// A list that was begun after so many is in force.
    pub(super) fn follow(&self, count: u64) {
        self.followed.send_replace(count);
    }

    pub(super) fn is_followed(&self) -> bool {
        *self.followed.borrow() >= self.count()
    }

    /// Waits until the list is as new as the server's word of now; `false` if that takes too long.
    pub(super) async fn followed(&self, limit: Duration) -> bool {
        let count = self.count();
        let mut followed = self.followed.subscribe();
        let arrived = followed.wait_for(|followed| *followed >= count);
        tokio::time::timeout(limit, arrived).await.is_ok_and(|arrived| arrived.is_ok())
    }
}
