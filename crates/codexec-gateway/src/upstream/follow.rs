//! Keeps a server's list current while it runs.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Connection, Lookup, Upstream, UpstreamError, listing};
use crate::tool::Tool;

/// The minimum pause between two lists, however often the server announces changes.
const PAUSE: Duration = Duration::from_millis(500);
/// The pause after a list that failed.
const RETRY: Duration = Duration::from_secs(2);
/// How long a call waits for a new list after a change notification.
const PATIENCE: Duration = Duration::from_secs(10);

impl Upstream {
    /// Fetches the list, and publishes it.
    pub(super) async fn list(
        &self,
        connection: &Connection,
        limit: Duration,
    ) -> Result<(), UpstreamError> {
        let changes = connection.changes().count();
        let listing = listing::list(connection, limit).await?;
        self.shelf.put(listing, connection.version()).await;
        connection.changes().follow(changes);
        self.shared.bell.ring();
        Ok(())
    }

    /// Lists again at every change notification and when the list expires, until the server ends.
    pub(super) async fn follow(&self, connection: &Connection) {
        loop {
            let life = self.listing().and_then(|listing| listing.life).unwrap_or(listing::LIFE);
            let due = Instant::now() + life;
            tokio::select! {
                () = connection.changes().next() => {}
                () = tokio::time::sleep_until(due) => {}
                () = connection.gone() => break,
                () = self.shut.cancelled() => return,
            }
            let pause = match self.list(connection, self.shared.settings.call_timeout).await {
                Ok(()) => PAUSE,
                Err(error) => {
                    tracing::debug!(server = %self.config.name, %error, "it did not list again");
                    RETRY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = connection.gone() => break,
                () = self.shut.cancelled() => return,
            }
        }
        tracing::info!(server = %self.config.name, "upstream down");
        connection.close().await;
    }

    /// Waits until our list reflects all change notifications, so that no call uses an outdated
    /// definition.
    pub(crate) async fn agreed(&self, connection: &Connection) -> Result<(), UpstreamError> {
        if connection.changes().is_followed() {
            return Ok(());
        }
        let patience = PATIENCE.min(self.shared.settings.call_timeout);
        tokio::select! {
            is_followed = connection.changes().followed(patience) => {
                if is_followed { Ok(()) } else { Err(UpstreamError::Unlisted) }
            }
            () = connection.gone() => Err(connection.ended().await),
        }
    }

    /// Returns true if a call with this definition may still be sent. The call may have waited, and
    /// its name may resolve to another tool by now.
    pub(super) fn is_agreed(&self, connection: &Connection, asked: &str, tool: &Arc<Tool>) -> bool {
        let listing = self.listing().unwrap_or_default();
        let is_same = match listing.lookup(asked) {
            Lookup::Found(now) => Arc::ptr_eq(now, tool) || now.raw == tool.raw,
            Lookup::KeptBack(..) | Lookup::Several(_) | Lookup::Nothing => false,
        };
        connection.changes().is_followed() && is_same
    }
}
