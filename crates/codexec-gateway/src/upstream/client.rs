//! What we are to an upstream: the side of the protocol that it may speak to.

use std::sync::Arc;

use rmcp::{
    RoleClient,
    handler::client::ClientHandler,
    model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion},
    service::NotificationContext,
};

use super::changes::Changes;

/// A client that can do nothing but call.
pub(super) struct Client {
    /// Told when the server says that its tools have changed.
    pub(super) changes: Arc<Changes>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("codexec", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changes.heard();
    }
}
