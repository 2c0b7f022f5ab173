//! Messages that a server sends by itself, and their receivers.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast;

use super::{callers::Callers, list_changes::ListChanges, progress::ProgressListeners};

/// The notifications that a relay passes on. Changes of tools go through our own list.
const RELAYED: [&str; 4] = [
    "notifications/message",
    "notifications/resources/updated",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
];

/// Receivers for messages that a server sends by itself.
#[derive(Clone, Default)]
pub(super) struct ServerEvents {
    /// Changes of its list of tools.
    pub(super) changes: Arc<ListChanges>,
    /// Progress of calls.
    pub(super) progress: Arc<ProgressListeners>,
    /// Callers that can answer its questions.
    pub(super) callers: Arc<Callers>,
    /// Notifications for the clients of a relay; `None` if there is no relay.
    pub(super) notices: Option<broadcast::Sender<ServerNotice>>,
}

/// A notification of a server that a relay passes on.
#[derive(Clone, Debug)]
pub struct ServerNotice {
    pub method: &'static str,
    pub params: Arc<Value>,
}

impl ServerEvents {
    pub(super) fn new(notices: Option<broadcast::Sender<ServerNotice>>) -> ServerEvents {
        ServerEvents { notices, ..ServerEvents::default() }
    }

    /// Passes on a notification, if anybody wants it.
    pub(super) fn relay(&self, method: &str, params: Option<&Value>) {
        let Some(notices) = &self.notices else { return };
        if let Some(method) = RELAYED.into_iter().find(|relayed| *relayed == method) {
            let params = Arc::new(params.cloned().unwrap_or_default());
            // Fails only if nobody listens.
            let _ = notices.send(ServerNotice { method, params });
        }
    }
}
