//! What we are to an upstream: the side of the protocol that it may speak to.

use rmcp::{
    RoleClient,
    handler::client::ClientHandler,
    model::{
        ClientCapabilities, ClientConfig, Implementation, NumberOrString,
        ProgressNotificationParam, ProgressToken, ProtocolVersion,
    },
    service::NotificationContext,
};

use super::{connection::News, progress::Progress};

/// A client that can do nothing but call.
pub(super) struct Client {
    pub(super) news: News,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("codexec", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.news.changed.notify_one();
    }

    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let ProgressToken(NumberOrString::Number(token)) = told.progress_token else { return };
        let progress = Progress::new(told.progress, told.total, told.message.as_deref());
        self.news.progress.tell(token, progress);
        self.news.sign();
    }
}
