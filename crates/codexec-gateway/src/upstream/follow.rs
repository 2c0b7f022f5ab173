//! Keeping a server's list true for as long as it runs.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{Connection, Lookup, Upstream, UpstreamError, listing};
use crate::tool::Tool;

/// A server that keeps saying its tools have changed is asked no more often.
const PAUSE: Duration = Duration::from_millis(500);
/// The same for one that then does not list them.
const RETRY: Duration = Duration::from_secs(2);
/// How long a call waits for a list that the server says is another by now.
const PATIENCE: Duration = Duration::from_secs(10);

impl Upstream {
    /// Reads the list, and puts it in force.
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

    /// Lists again whenever the server says so, or its list has had its time, until it ends.
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

    /// Waits until our list is as new as the server's own word about it, so that no call goes by
    /// a definition that is no more.
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

    /// Whether a call by this definition may still be sent: it may have waited for its turn, and
    /// what was asked for may stand for another tool by now.
    pub(super) fn is_agreed(&self, connection: &Connection, asked: &str, tool: &Arc<Tool>) -> bool {
        let listing = self.listing().unwrap_or_default();
        let is_same = match listing.lookup(asked) {
            Lookup::Found(now) => Arc::ptr_eq(now, tool) || now.raw == tool.raw,
            Lookup::KeptBack(..) | Lookup::Several(_) | Lookup::Nothing => false,
        };
        connection.changes().is_followed() && is_same
    }
}
