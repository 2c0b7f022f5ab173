//! Keeps a server's list current while it runs.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{ToolLookup, Upstream, UpstreamConnection, UpstreamError, listing};
use crate::tool::Tool;

/// The minimum pause between two lists, however often the server announces changes.
const PAUSE: Duration = Duration::from_millis(500);
/// The pause after a list that failed.
const RETRY: Duration = Duration::from_secs(2);
/// How long a call waits for a new list after a change notification.
const LIST_WAIT: Duration = Duration::from_secs(10);

impl Upstream {
    /// Fetches the list, and publishes it.
    pub(super) async fn refresh_list(
        &self,
        connection: &UpstreamConnection,
        limit: Duration,
    ) -> Result<(), UpstreamError> {
        let changes = connection.changes().count();
        let listing = listing::fetch_list(connection, limit).await?;
        self.tool_cache.store(listing, connection.version()).await;
        connection.changes().mark_followed(changes);
        self.shared.list_changed.notify();
        Ok(())
    }

    /// Lists again at every change notification and when the list expires, until the server ends.
    pub(super) async fn keep_list_current(&self, connection: &UpstreamConnection) {
        loop {
            let ttl =
                self.listing().and_then(|listing| listing.ttl).unwrap_or(listing::MAX_LIST_TTL);
            let due = Instant::now() + ttl;
            tokio::select! {
                () = connection.changes().wait_for_next() => {}
                () = tokio::time::sleep_until(due) => {}
                () = connection.wait_closed() => break,
                () = self.shutdown_token.cancelled() => return,
            }
            let pause = match self.refresh_list(connection, self.shared.settings.call_timeout).await
            {
                Ok(()) => PAUSE,
                Err(error) => {
                    let server = &self.config.name;
                    tracing::debug!(%server, %error, "cannot refresh the tool list");
                    RETRY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = connection.wait_closed() => break,
                () = self.shutdown_token.cancelled() => return,
            }
        }
        tracing::info!(server = %self.config.name, "upstream down");
        connection.close().await;
    }

    /// Waits until our list reflects all change notifications, so that no call uses an outdated
    /// definition.
    pub(crate) async fn wait_for_current_list(
        &self,
        connection: &UpstreamConnection,
    ) -> Result<(), UpstreamError> {
        if connection.changes().is_current() {
            return Ok(());
        }
        let wait = LIST_WAIT.min(self.shared.settings.call_timeout);
        tokio::select! {
            is_current = connection.changes().wait_until_current(wait) => {
                if is_current { Ok(()) } else { Err(UpstreamError::ListMissing) }
            }
            () = connection.wait_closed() => Err(connection.end_error().await),
        }
    }

    /// Returns true if a call with this definition may still be sent. The call may have waited, and
    /// its name may resolve to another tool by now.
    pub(super) fn is_still_current(
        &self,
        connection: &UpstreamConnection,
        requested_name: &str,
        tool: &Arc<Tool>,
    ) -> bool {
        let listing = self.listing().unwrap_or_default();
        let is_same = match listing.lookup(requested_name) {
            ToolLookup::Found(now) => Arc::ptr_eq(now, tool) || now.raw == tool.raw,
            ToolLookup::Withheld(..) | ToolLookup::Ambiguous(_) | ToolLookup::Missing => false,
        };
        connection.changes().is_current() && is_same
    }
}
