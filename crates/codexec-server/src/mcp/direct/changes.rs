//! Notifies clients when the tool list differs from the one they have.

use std::sync::{Arc, Mutex, PoisonError};

use codexec_gateway::Relay;
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
    pub(in crate::mcp) fn set(&self, list: u64) {
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

/// The origin of a client's tool list.
pub(in crate::mcp) enum ToolListSource {
    /// The tools of all servers.
    Direct(Arc<App>, Arc<Connection>),
    /// The tools of one server.
    Relay(Arc<Relay>, Arc<Connection>),
}

impl ToolListSource {
    async fn hash(&self) -> u64 {
        let tools = match self {
            ToolListSource::Direct(app, connection) => {
                app.gateway.list_direct_tools(&connection.policy().tools).await
            }
            ToolListSource::Relay(relay, connection) => {
                relay.list_tools(&connection.policy().tools).await
            }
        };
        hash_tools(&tools)
    }

    fn subscribe(&self) -> watch::Receiver<u64> {
        match self {
            ToolListSource::Direct(app, _) => app.gateway.subscribe_changes(),
            ToolListSource::Relay(relay, _) => relay.subscribe_changes(),
        }
    }
}

/// Detects list changes for one client.
pub(in crate::mcp) struct ListChangeDetector {
    source: ToolListSource,
    known_list: KnownList,
    changes: watch::Receiver<u64>,
    /// True if every change counts, whether or not the client has listed since the last one.
    is_subscription: bool,
}

impl ListChangeDetector {
    /// Detects changes from the list that the client got last.
    pub(in crate::mcp) fn new(source: ToolListSource, known_list: &KnownList) -> Self {
        let (known_list, changes) = (known_list.clone(), source.subscribe());
        ListChangeDetector { source, known_list, changes, is_subscription: false }
    }

    /// Detects every change from now on. A client without a session lists in other requests, of
    /// which a subscription does not know.
    pub(in crate::mcp) async fn subscribe(source: ToolListSource) -> Self {
        let changes = source.subscribe();
        let known_list = KnownList::default();
        known_list.set(source.hash().await);
        ListChangeDetector { source, known_list, changes, is_subscription: true }
    }

    /// Returns `true` when the client should list again, and `false` if there will be no more
    /// changes.
    pub(in crate::mcp) async fn next(&mut self) -> bool {
        while self.changes.changed().await.is_ok() {
            let list = self.source.hash().await;
            if self.known_list.needs_notification(list) {
                if self.is_subscription {
                    self.known_list.set(list);
                }
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
