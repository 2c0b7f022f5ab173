//! Notifies clients when the tool list differs from the one they have.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::hash_tools;
use crate::{App, Connection};

/// The tool list that the client has.
#[derive(Clone, Default)]
pub(in crate::mcp) struct KnownList(Arc<Mutex<KnownListState>>);

#[derive(Default)]
struct KnownListState {
    /// The hash of the last list sent; `None` before the first.
    list: Option<u64>,
    /// True if the client was notified of a change and has not listed since.
    is_notified: bool,
}

impl KnownList {
    /// Records that the client gets this list.
    pub(super) fn set(&self, list: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = KnownListState { list: Some(list), is_notified: false };
    }

    /// True if the client must be notified. Once is enough until it lists again.
    fn needs_notification(&self, list: u64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let needs_notification = !known.is_notified && known.list.is_some_and(|last| last != list);
        known.is_notified |= needs_notification;
        needs_notification
    }
}

/// Detects list changes for one client.
pub(in crate::mcp) struct ListChangeDetector {
    app: Arc<App>,
    connection: Arc<Connection>,
    known_list: KnownList,
    changes: watch::Receiver<u64>,
}

impl ListChangeDetector {
    pub(in crate::mcp) fn new(
        app: &Arc<App>,
        connection: &Arc<Connection>,
        known_list: &KnownList,
    ) -> ListChangeDetector {
        ListChangeDetector {
            app: Arc::clone(app),
            connection: Arc::clone(connection),
            known_list: known_list.clone(),
            changes: app.gateway.subscribe_changes(),
        }
    }

    /// Returns `true` when the client should list again, and `false` if there will be no more
    /// changes.
    pub(in crate::mcp) async fn next(&mut self) -> bool {
        while self.changes.changed().await.is_ok() {
            let policy = self.connection.policy();
            let tools = self.app.gateway.list_direct_tools(&policy.tools).await;
            if self.known_list.needs_notification(hash_tools(&tools)) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_notified_once_and_only_of_changes() {
        let known_list = KnownList::default();
        assert!(!known_list.needs_notification(1), "it has not asked yet");
        known_list.set(1);
        assert!(!known_list.needs_notification(1));
        assert!(known_list.needs_notification(2));
        assert!(!known_list.needs_notification(3), "it has not asked since");
        known_list.set(3);
        assert!(!known_list.needs_notification(3));
        assert!(known_list.needs_notification(2));
    }
}
