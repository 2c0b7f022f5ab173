//! Several messages in one request.

use http::request::Parts;
use http::{Response, StatusCode};
use rmcp::RoleServer;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::Service;
use rmcp::transport::streamable_http_server::session::SessionManager as _;

use super::refusal::{Refusal, empty};
use super::{Endpoint, HttpBody, request, sse};

/// The only revision in which a request may have several messages.
const REVISION_WITH_BATCHES: &str = "2025-03-26";
const NO_BATCHES: &str = "only sessions of MCP 2025-03-26 have batches; send one message";
const MAX_BATCH: usize = 32;

impl<S: Service<RoleServer>> Endpoint<S> {
    /// Answers several messages at once. Only sessions of 2025-03-26 have batches.
    pub(super) async fn post_batch(
        &self,
        head: &Parts,
        body: &[u8],
    ) -> Result<Response<HttpBody>, Refusal> {
        request::check_accept(&head.headers)?;
        request::check_known_version(&head.headers)?;
        let id = request::session_id(&head.headers)?.ok_or_else(Refusal::needs_session)?;
        self.check_session(&id)?;
        let version = self.lock_sessions().get(&id).map(|session| session.version.clone());
        if version.as_deref() != Some(REVISION_WITH_BATCHES) {
            return Err(Refusal::plain(StatusCode::BAD_REQUEST, NO_BATCHES));
        }
        let batch: Vec<ClientJsonRpcMessage> = serde_json::from_slice(body).map_err(|error| {
            let message = format!("a message of the batch is not valid: {error}");
            Refusal::plain(StatusCode::BAD_REQUEST, &message)
        })?;
        if batch.is_empty() || batch.len() > MAX_BATCH || batch.iter().any(request::is_initialize) {
            let message = format!("a batch has 1 to {MAX_BATCH} messages, none of them initialize");
            return Err(Refusal::plain(StatusCode::BAD_REQUEST, &message));
        }
        let id = id.into();
        let mut answers = Vec::new();
        for message in batch {
            if matches!(message, ClientJsonRpcMessage::Request(_)) {
                let events = self.sessions.create_stream(&id, message).await;
                answers.push(Box::pin(events.map_err(|_| Refusal::no_session())?));
            } else {
                let taken = self.sessions.accept_message(&id, message).await;
                taken.map_err(|_| Refusal::no_session())?;
            }
        }
        Ok(match answers.is_empty() {
            true => empty(StatusCode::ACCEPTED),
            false => sse::respond(futures::stream::select_all(answers), (), self.stop.clone()),
        })
    }
}
