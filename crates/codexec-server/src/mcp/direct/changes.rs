//! Notifies clients when the tool list differs from the one they have.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::digest;
use crate::App;

/// The tool list that the client has.
#[derive(Clone, Default)]
pub(in crate::mcp) struct Told(Arc<Mutex<Knowledge>>);

#[derive(Default)]
struct Knowledge {
    /// The hash of the last list sent; `None` before the first.
    list: Option<u64>,
    /// True if the client was notified of a change and has not listed since.
    heard: bool,
}

impl Told {
    /// Records that the client gets this list.
    pub(super) fn is(&self, list: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Knowledge { list: Some(list), heard: false };
    }

    /// True if the client must be notified. Once is enough until it lists again.
    fn is_news(&self, list: u64) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = !known.heard && known.list.is_some_and(|last| last != list);
        known.heard |= is_news;
        is_news
    }
}

/// Detects list changes for one client.
pub(in crate::mcp) struct News {
    app: Arc<App>,
    told: Told,
    changes: watch::Receiver<u64>,
}

impl News {
    pub(in crate::mcp) fn new(app: &Arc<App>, told: &Told) -> News {
        News { app: Arc::clone(app), told: told.clone(), changes: app.gateway.changes() }
    }

    /// Returns `true` when the client should list again, and `false` if there will be no more
    /// changes.
    pub(in crate::mcp) async fn next(&mut self) -> bool {
        while self.changes.changed().await.is_ok() {
            let tools = self.app.gateway.direct_tools(&self.app.in_force.policy().tools).await;
            if self.told.is_news(digest(&tools)) {
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
    fn a_client_is_told_once_and_only_of_what_it_does_not_know() {
        let told = Told::default();
        assert!(!told.is_news(1), "it has not asked yet");
        told.is(1);
        assert!(!told.is_news(1));
        assert!(told.is_news(2));
        assert!(!told.is_news(3), "it has not asked since");
        told.is(3);
        assert!(!told.is_news(3));
        assert!(told.is_news(2));
    }
}
