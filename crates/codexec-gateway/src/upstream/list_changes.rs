//! `tools/list_changed` notifications: recorded in order of arrival, before any later answer is
//! delivered.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::sync::{Notify, watch};

/// The number of change notifications, and how many of them the current list reflects.
#[derive(Debug)]
pub(super) struct ListChanges {
    announced: AtomicU64,
    signal: Notify,
    followed: watch::Sender<u64>,
}

impl Default for ListChanges {
    fn default() -> ListChanges {
        ListChanges {
            announced: AtomicU64::new(0),
            signal: Notify::new(),
            followed: watch::Sender::new(0),
        }
    }
}

impl ListChanges {
    pub(super) fn record(&self) {
        self.announced.fetch_add(1, Ordering::AcqRel);
        self.signal.notify_one();
    }

    /// Waits for the next notification.
    pub(super) async fn wait_for_next(&self) {
        while self.is_current() {
            self.signal.notified().await;
        }
    }

    /// Returns the number of notifications so far.
    pub(super) fn count(&self) -> u64 {
        self.announced.load(Ordering::Acquire)
    }

    /// Marks notifications up to `count` as reflected in the current list.
    pub(super) fn mark_followed(&self, count: u64) {
        self.followed.send_replace(count);
    }

    pub(super) fn is_current(&self) -> bool {
        *self.followed.borrow() >= self.count()
    }

    /// Waits until the list reflects all notifications so far. Returns false on timeout.
    pub(super) async fn wait_until_current(&self, limit: Duration) -> bool {
        let count = self.count();
        let mut followed = self.followed.subscribe();
        let arrived = followed.wait_for(|followed| *followed >= count);
        tokio::time::timeout(limit, arrived).await.is_ok_and(|arrived| arrived.is_ok())
    }
}
