//! The state that all requests to one remote server share.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use reqwest::{
    Client, RequestBuilder, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName},
};
use rmcp::{
    RoleClient,
    model::{ErrorCode, ErrorData, JsonRpcMessage, NumberOrString},
    service::TxJsonRpcMessage,
};
use serde_json::Value;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    headers::{SESSION, VERSION},
    http_error,
    mirrored_arguments::MirroredArgument,
    outgoing::OutgoingMessage,
    request_failures::RequestFailures,
    state::RemoteState,
};
use crate::{
    oauth::Account,
    upstream::{
        UpstreamError,
        incoming::{InFlight, Message, read_messages},
        server_events::ServerEvents,
    },
    web,
};

/// The time limit for messages that no caller waits for. Other requests have their caller's limit.
pub(super) const CONTROL_TIMEOUT: Duration = Duration::from_secs(15);
/// The limit on messages waiting for rmcp.
pub(super) const INBOX_MESSAGES: usize = 256;
const SESSION_BYTES: usize = 1 << 10;

pub(super) struct RemoteLink {
    client: Client,
    pub(super) url: Url,
    /// The address for messages, if different from `url`.
    endpoint: OnceLock<Url>,
    /// The user's own headers, including secrets.
    headers: HeaderMap,
    account: Arc<Account>,
    pub(super) max_bytes: usize,
    inbox: mpsc::Sender<Message>,
    state: Mutex<RemoteState>,
    pub(super) failures: Arc<RequestFailures>,
    /// Cancelled when nothing more will arrive.
    pub(super) closed: CancellationToken,
}

/// The parts a link is built from.
#[derive(Clone)]
pub(super) struct LinkParts {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) account: Arc<Account>,
    pub(super) max_bytes: usize,
    pub(super) closed: CancellationToken,
    pub(super) server_events: ServerEvents,
}

impl RemoteLink {
    pub(super) fn new(parts: LinkParts, inbox: mpsc::Sender<Message>) -> RemoteLink {
        RemoteLink {
            client: parts.client,
            url: parts.url,
            endpoint: OnceLock::new(),
            headers: parts.headers,
            account: parts.account,
            max_bytes: parts.max_bytes,
            inbox,
            state: Mutex::new(RemoteState::new(parts.server_events)),
            failures: Arc::default(),
            closed: parts.closed,
        }
    }

    pub(super) fn set_endpoint(&self, endpoint: Url) {
        let _ = self.endpoint.set(endpoint);
    }

    fn state(&self) -> MutexGuard<'_, RemoteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with_in_flight<T>(&self, work: impl FnOnce(&mut InFlight) -> T) -> T {
        work(&mut self.state().in_flight)
    }

    pub(super) fn is_waiting_for(&self, request: i64) -> bool {
        self.state().in_flight.ids.contains(&request)
    }

    /// Registers a request. The returned token is cancelled when nobody wants the request any more.
    pub(super) fn begin_request(&self, id: i64, outgoing: &OutgoingMessage) -> CancellationToken {
        let mut state = self.state();
        state.in_flight.ids.insert(id);
        state.is_modern = outgoing.is_modern;
        match outgoing.method.as_str() {
            "initialize" => state.in_flight.initialize = Some(id),
            "server/discover" => state.in_flight.discover = Some(id),
            _ => {}
        }
        let token = self.closed.child_token();
        state.calls.insert(id, token.clone());
        token
    }

    /// Forgets a request whose task has ended.
    pub(super) fn finish_request(&self, id: i64) {
        self.state().calls.remove(&id);
    }

    pub(super) fn cancel(&self, id: i64) {
        let mut state = self.state();
        state.in_flight.ids.remove(&id);
        if let Some(call) = state.calls.remove(&id) {
            call.cancel();
        }
    }

    pub(super) fn mirrored_arguments(&self, tool: &str) -> Vec<MirroredArgument> {
        self.state().mirrored.get(tool).cloned().unwrap_or_default()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.state().is_modern
    }

    /// Returns, once, a filter for the changes that the server offers to announce; the caller must
    /// subscribe.
    pub(super) fn take_changes_offer(&self) -> Option<Value> {
        self.state().offered_changes.take()
    }

    pub(super) fn has_session(&self) -> bool {
        self.state().session.is_some()
    }

    /// Stores the session id from the handshake of an older server.
    pub(super) fn learn_session(&self, response: &Response) {
        let session = response.headers().get(SESSION).filter(|id| id.len() <= SESSION_BYTES);
        if let Some(session) = session {
            self.state().session = Some(session.clone());
        }
    }

    /// Reads a server's message, as an answer to `of` or on its own, and delivers it. Returns false
    /// if it is junk.
    pub(super) async fn receive(&self, data: &[u8], of: Option<&OutgoingMessage>) -> bool {
        let (messages, replies) = self.with_in_flight(|in_flight| {
            in_flight.server_messages.reset_limits();
            let messages = read_messages(data, in_flight);
            (messages, in_flight.server_messages.take_replies())
        });
        let is_read = messages.is_some();
        self.deliver(messages.unwrap_or_default(), of).await;
        for reply in replies {
            // A server that does not accept replies does not get them.
            let _ = timeout(CONTROL_TIMEOUT, self.post(&OutgoingMessage::new(&reply, None))).await;
        }
        is_read
    }

    /// Notes if this message answers a request of the server.
    pub(super) fn note_answer(&self, item: &TxJsonRpcMessage<RoleClient>) {
        match item {
            JsonRpcMessage::Response(response) => self.mark_answered(&response.id),
            JsonRpcMessage::Error(error) => error.id.iter().for_each(|id| self.mark_answered(id)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
    }

    /// Marks one of the server's requests as answered by rmcp.
    fn mark_answered(&self, id: &NumberOrString) {
        let id = serde_json::to_string(id).unwrap_or_default();
        self.state().in_flight.server_messages.mark_answered(&id);
    }

    /// Delivers messages to rmcp.
    pub(super) async fn deliver(&self, messages: Vec<Message>, of: Option<&OutgoingMessage>) {
        for mut message in messages {
            self.state().learn(&mut message, of);
            // Fails only if rmcp has shut down.
            let _ = self.inbox.send(message).await;
        }
    }

    /// Reports the error to the caller. A failed handshake ends the connection.
    pub(super) async fn fail(&self, outgoing: &OutgoingMessage, error: UpstreamError) {
        if outgoing.is_handshake() {
            self.end(error);
            return;
        }
        let Some(id) = outgoing.id else { return };
        if !self.with_in_flight(|in_flight| in_flight.ids.remove(&id)) {
            return;
        }
        let reply = ErrorData::new(ErrorCode::INTERNAL_ERROR, error.to_string(), None);
        self.failures.record(id, error);
        self.deliver(vec![Message::error(reply, Some(NumberOrString::Number(id)))], None).await;
    }

    /// Ends the connection because the server has forgotten the session.
    pub(super) fn end_session(&self, error: UpstreamError) {
        self.state().session = None;
        self.end(error);
    }

    pub(super) fn end(&self, error: UpstreamError) {
        self.failures.set_end_reason(error);
        self.closed.cancel();
    }

    /// Posts a message. A refused access token is renewed once.
    pub(super) async fn post(&self, outgoing: &OutgoingMessage) -> Result<Response, UpstreamError> {
        let request = || {
            let url = self.endpoint.get().unwrap_or(&self.url);
            let request = self.client.post(url.clone()).body(outgoing.body.clone());
            let request = request.header(CONTENT_TYPE, "application/json");
            let request = request.header(ACCEPT, "application/json, text/event-stream");
            self.with_session_headers(request, outgoing.is_handshake())
                .headers(outgoing.headers.clone())
        };
        self.send(request).await
    }

    /// Opens the server's event stream, resuming after `last_id`.
    pub(super) async fn get(&self, last_id: Option<&str>) -> Result<Response, UpstreamError> {
        let request = || {
            let request = self.client.get(self.url.clone()).header(ACCEPT, "text/event-stream");
            let request = self.with_session_headers(request, false);
            match last_id {
                Some(id) => request.header(HeaderName::from_static("last-event-id"), id),
                None => request,
            }
        };
        self.send(request).await
    }

    /// Deletes the session of an older server.
    pub(super) async fn delete_session(&self) {
        if self.has_session() {
            let request = || self.with_session_headers(self.client.delete(self.url.clone()), false);
            let _ = tokio::time::timeout(Duration::from_secs(1), self.send(request)).await;
        }
    }

    fn with_session_headers(
        &self,
        mut request: RequestBuilder,
        is_handshake: bool,
    ) -> RequestBuilder {
        request = request.headers(self.headers.clone());
        let state = self.state();
        if is_handshake {
            return request;
        }
        if let Some(session) = &state.session {
            request = request.header(SESSION, session.clone());
        }
        if let Some(version) = &state.version {
            request = request.header(VERSION, version.clone());
        }
        request
    }

    /// THREAT[REM-4]: sends only the credential that was issued for this server.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Response, UpstreamError> {
        let mut token = self.account.access_token().await;
        let mut is_renewed = false;
        loop {
            let mut request = request();
            if let Some(token) =
                token.as_ref().filter(|_| !self.headers.contains_key(AUTHORIZATION))
            {
                request = request.bearer_auth(token);
            }
            let sent = request.send().await;
            let response = sent.map_err(|error| self.send_error(&error))?;
            let is_refused = response.status() == StatusCode::UNAUTHORIZED;
            if is_refused
                && !is_renewed
                && let Some(old) = &token
            {
                is_renewed = true;
                if let Some(new) = self.account.renew_token(old).await {
                    token = Some(new);
                    continue;
                }
            }
            http_error::remember_scopes(&response, &self.account).await;
            return Ok(response);
        }
    }

    /// Returns the error for missing or insufficient credentials.
    pub(super) fn login_error(&self, why: &str) -> UpstreamError {
        if self.headers.contains_key(AUTHORIZATION) {
            let why = "it rejects the Authorization header of its entry".to_owned();
            return UpstreamError::Refused(why);
        }
        let server = self.account.name().to_string();
        UpstreamError::NeedsLogin { why: why.to_owned(), server }
    }

    fn send_error(&self, error: &reqwest::Error) -> UpstreamError {
        let why = web::describe_error(error);
        if error.is_connect() {
            // Nothing listens there any more, so the connection is over.
            self.end(UpstreamError::Start(why.clone()));
        }
        UpstreamError::Unreachable(why)
    }
}
