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
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    books::Books,
    headers::{SESSION, VERSION},
    outgoing::Outgoing,
    params::Mirrored,
    refusal,
    troubles::Troubles,
};
use crate::{
    oauth::Account,
    upstream::{
        UpstreamError,
        connection::News,
        incoming::{InFlight, Message, read},
    },
    web,
};

/// The time limit for messages that no caller waits for. Other requests have their caller's limit.
pub(super) const CONTROL: Duration = Duration::from_secs(15);
/// The limit on messages waiting for rmcp.
pub(super) const QUEUED: usize = 256;
const SESSION_BYTES: usize = 1 << 10;

pub(super) struct Link {
    client: Client,
    pub(super) url: Url,
    /// The address for messages, if different from `url`.
    endpoint: OnceLock<Url>,
    /// The user's own headers, including secrets.
    headers: HeaderMap,
    account: Arc<Account>,
    pub(super) max_bytes: usize,
    inbox: mpsc::Sender<Message>,
    books: Mutex<Books>,
    pub(super) troubles: Arc<Troubles>,
    /// Cancelled when nothing more will arrive.
    pub(super) gone: CancellationToken,
}

/// The parts a link is built from.
#[derive(Clone)]
pub(super) struct Ends {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) account: Arc<Account>,
    pub(super) max_bytes: usize,
    pub(super) gone: CancellationToken,
    pub(super) news: News,
}

impl Link {
    pub(super) fn new(ends: Ends, inbox: mpsc::Sender<Message>) -> Link {
        Link {
            client: ends.client,
            url: ends.url,
            endpoint: OnceLock::new(),
            headers: ends.headers,
            account: ends.account,
            max_bytes: ends.max_bytes,
            inbox,
            books: Mutex::new(Books::new(ends.news)),
            troubles: Arc::default(),
            gone: ends.gone,
        }
    }

    pub(super) fn post_to(&self, endpoint: Url) {
        let _ = self.endpoint.set(endpoint);
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with_in_flight<T>(&self, work: impl FnOnce(&mut InFlight) -> T) -> T {
        work(&mut self.books().in_flight)
    }

    pub(super) fn waits_for(&self, request: i64) -> bool {
        self.books().in_flight.ids.contains(&request)
    }

    /// Registers a request. The returned token is cancelled when nobody wants the request any more.
    pub(super) fn begin(&self, id: i64, outgoing: &Outgoing) -> CancellationToken {
        let mut books = self.books();
        books.in_flight.ids.insert(id);
        books.is_modern = outgoing.is_modern;
        match outgoing.method.as_str() {
            "initialize" => books.in_flight.initialize = Some(id),
            "server/discover" => books.in_flight.discover = Some(id),
            _ => {}
        }
        let token = self.gone.child_token();
        books.calls.insert(id, token.clone());
        token
    }

    /// Forgets a request whose task has ended.
    pub(super) fn ended(&self, id: i64) {
        self.books().calls.remove(&id);
    }

    pub(super) fn cancel(&self, id: i64) {
        let mut books = self.books();
        books.in_flight.ids.remove(&id);
        if let Some(call) = books.calls.remove(&id) {
            call.cancel();
        }
    }

    pub(super) fn mirrored(&self, tool: &str) -> Vec<Mirrored> {
        self.books().mirrored.get(tool).cloned().unwrap_or_default()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.books().is_modern
    }

    /// Returns true once if the server offers a subscription to changes; the caller must subscribe.
    pub(super) fn tells_changes(&self) -> bool {
        std::mem::take(&mut self.books().tells_changes)
    }

    pub(super) fn has_session(&self) -> bool {
        self.books().session.is_some()
    }

    /// Stores the session id from the handshake of an older server.
    pub(super) fn learn_session(&self, response: &Response) {
        let session = response.headers().get(SESSION).filter(|id| id.len() <= SESSION_BYTES);
        if let Some(session) = session {
            self.books().session = Some(session.clone());
        }
    }

    /// Reads a server's message, as an answer to `of` or on its own, and delivers it. Returns false
    /// if it is junk.
    pub(super) async fn take(&self, data: &[u8], of: Option<&Outgoing>) -> bool {
        let (messages, replies) = self.with_in_flight(|in_flight| {
            in_flight.theirs.refresh();
            let messages = read(data, in_flight);
            (messages, in_flight.theirs.replies())
        });
        let is_read = messages.is_some();
        self.deliver(messages.unwrap_or_default(), of).await;
        for reply in replies {
            // A server that does not accept replies does not get them.
            let _ = timeout(CONTROL, self.post(&Outgoing::new(&reply, None))).await;
        }
        is_read
    }

    /// Notes if this message answers a request of the server.
    pub(super) fn note_answer(&self, item: &TxJsonRpcMessage<RoleClient>) {
        match item {
            JsonRpcMessage::Response(response) => self.answered(&response.id),
            JsonRpcMessage::Error(error) => error.id.iter().for_each(|id| self.answered(id)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
    }

    /// Marks one of the server's requests as answered by rmcp.
    fn answered(&self, id: &NumberOrString) {
        let id = serde_json::to_string(id).unwrap_or_default();
        self.books().in_flight.theirs.answered(&id);
    }

    /// Delivers messages to rmcp.
    pub(super) async fn deliver(&self, messages: Vec<Message>, of: Option<&Outgoing>) {
        for mut message in messages {
            self.books().learn(&mut message, of);
            // Fails only if rmcp has shut down.
            let _ = self.inbox.send(message).await;
        }
    }

    /// Reports the error to the caller. A failed handshake ends the connection.
    pub(super) async fn fail(&self, outgoing: &Outgoing, error: UpstreamError) {
        if outgoing.is_handshake() {
            self.end(error);
            return;
        }
        let Some(id) = outgoing.id else { return };
        if !self.with_in_flight(|in_flight| in_flight.ids.remove(&id)) {
            return;
        }
        let words = ErrorData::new(ErrorCode::INTERNAL_ERROR, error.to_string(), None);
        self.troubles.note(id, error);
        self.deliver(vec![Message::error(words, Some(NumberOrString::Number(id)))], None).await;
    }

    /// Ends the connection because the server has forgotten the session.
    pub(super) fn end_session(&self, error: UpstreamError) {
        self.books().session = None;
        self.end(error);
    }

    pub(super) fn end(&self, error: UpstreamError) {
        self.troubles.end(error);
        self.gone.cancel();
    }

    /// Posts a message. A refused access token is renewed once.
    pub(super) async fn post(&self, outgoing: &Outgoing) -> Result<Response, UpstreamError> {
        let request = || {
            let url = self.endpoint.get().unwrap_or(&self.url);
            let request = self.client.post(url.clone()).body(outgoing.body.clone());
            let request = request.header(CONTENT_TYPE, "application/json");
            let request = request.header(ACCEPT, "application/json, text/event-stream");
            self.with_books(request, outgoing.is_handshake()).headers(outgoing.headers.clone())
        };
        self.send(request).await
    }

    /// Opens the server's event stream, resuming after `last_id`.
    pub(super) async fn get(&self, last_id: Option<&str>) -> Result<Response, UpstreamError> {
        let request = || {
            let request = self.client.get(self.url.clone()).header(ACCEPT, "text/event-stream");
            let request = self.with_books(request, false);
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
            let request = || self.with_books(self.client.delete(self.url.clone()), false);
            let _ = tokio::time::timeout(Duration::from_secs(1), self.send(request)).await;
        }
    }

    fn with_books(&self, mut request: RequestBuilder, is_handshake: bool) -> RequestBuilder {
        request = request.headers(self.headers.clone());
        let books = self.books();
        if is_handshake {
            return request;
        }
        if let Some(session) = &books.session {
            request = request.header(SESSION, session.clone());
        }
        if let Some(version) = &books.version {
            request = request.header(VERSION, version.clone());
        }
        request
    }

    /// THREAT[REM-4]: sends only the credential that was issued for this server.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Response, UpstreamError> {
        let mut token = self.account.token().await;
        let mut is_renewed = false;
        loop {
            let mut request = request();
            if let Some(token) =
                token.as_ref().filter(|_| !self.headers.contains_key(AUTHORIZATION))
            {
                request = request.bearer_auth(token);
            }
            let sent = request.send().await;
            let response = sent.map_err(|error| self.unsent(&error))?;
            let is_refused = response.status() == StatusCode::UNAUTHORIZED;
            if is_refused
                && !is_renewed
                && let Some(old) = &token
            {
                is_renewed = true;
                if let Some(new) = self.account.renewed(old).await {
                    token = Some(new);
                    continue;
                }
            }
            refusal::note_scopes(&response, &self.account).await;
            return Ok(response);
        }
    }

    /// Returns the error for missing or insufficient credentials.
    pub(super) fn unwelcome(&self, why: &str) -> UpstreamError {
        if self.headers.contains_key(AUTHORIZATION) {
            let why = "it does not take the Authorization header of its entry".to_owned();
            return UpstreamError::Refused(why);
        }
        let server = self.account.name().to_string();
        UpstreamError::NeedsLogin { why: why.to_owned(), server }
    }

    fn unsent(&self, error: &reqwest::Error) -> UpstreamError {
        let why = web::why(error);
        if error.is_connect() {
            // Nothing listens there any more, so the connection is over.
            self.end(UpstreamError::Start(why.clone()));
        }
        UpstreamError::Unreachable(why)
    }
}
