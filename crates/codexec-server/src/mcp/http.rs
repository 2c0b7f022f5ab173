//! MCP over Streamable HTTP, in both eras: sessions for the revisions up to 2025-11-25, single
//! requests from 2026-07-28 on. The edge has authenticated the client and read the body before.

mod batch;
mod refusal;
mod request;
mod sse;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use codexec_types::ServerName;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, InitializeRequestParams};
use rmcp::service::{Service, ServiceExt as _, serve_directly_with_ct};
use rmcp::transport::OneshotTransport;
use rmcp::transport::common::server_side_http::ServerSseMessage;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub use self::sse::stream_events;

use self::refusal::{Refusal, empty, json_response};
use self::request::Era;
use super::direct::KnownList;
use super::execute_code::RETRY_META;
use super::pending_call::ParkedCalls;
use super::raw_result::RawServer;
use super::relay::{RelayServer, RelayTarget};
use super::{McpServer, execute_code, stdio};
use crate::{App, Connection};

/// The body of a response; never fails.
pub type HttpBody = UnsyncBoxBody<Bytes, Infallible>;

/// Maximum number of open sessions of one token at one path.
const MAX_SESSIONS: usize = 256;
/// A session without any message for this long is closed.
const SESSION_IDLE: Duration = Duration::from_secs(30 * 60);
/// A request that is not answered within this time is answered with a stream, so that the client
/// sees that the server lives.
const PROMPT_ANSWER: Duration = Duration::from_secs(2);
const SESSION_HEADER: &str = "mcp-session-id";

/// The MCP server at one path for one token. Sessions of other tokens do not exist here.
pub struct McpEndpoint {
    handler: Arc<dyn Handler>,
    relay: Option<Arc<RelayTarget>>,
}

trait Handler: Send + Sync {
    fn handle<'a>(&'a self, head: &'a Parts, body: &'a [u8]) -> BoxFuture<'a, Response<HttpBody>>;
}

impl McpEndpoint {
    /// Serves the tools of the connection until `stop` is cancelled.
    pub fn new(app: Arc<App>, connection: Arc<Connection>, stop: CancellationToken) -> McpEndpoint {
        let parked_calls = ParkedCalls::default();
        let (own_app, own_connection) = (Arc::clone(&app), Arc::clone(&connection));
        let refuse = move |message: &Value| {
            let refused = execute_code::refuse_if_busy(&own_app, &own_connection, message)?;
            serde_json::to_value(refused).ok()
        };
        let make_server = move |disconnected: CancellationToken| {
            RawServer(McpServer {
                app: Arc::clone(&app),
                connected_at: Instant::now(),
                connection: Arc::clone(&connection),
                // A client without sessions continues a call in another request.
                parked_calls: parked_calls.clone(),
                known_list: KnownList::default(),
                disconnected,
            })
        };
        McpEndpoint { handler: Arc::new(Endpoint::new(make_server, refuse, stop)), relay: None }
    }

    /// Serves one of the user's servers, passed through, until `stop` is cancelled.
    pub fn relay(
        app: Arc<App>,
        connection: Arc<Connection>,
        server: ServerName,
        stop: CancellationToken,
    ) -> McpEndpoint {
        let target = Arc::new(RelayTarget::new(app, connection, server));
        let relay = Some(Arc::clone(&target));
        let make_server = move |disconnected: CancellationToken| {
            RawServer(RelayServer::new(Arc::clone(&target), disconnected))
        };
        McpEndpoint { handler: Arc::new(Endpoint::new(make_server, |_| None, stop)), relay }
    }

    /// Answers a request whose body was read in full.
    pub async fn handle(&self, head: &Parts, body: &[u8]) -> Response<HttpBody> {
        if let Some(relay) = &self.relay
            && let Err(error) = relay.prepare().await
        {
            return Refusal::busy(&error.message).into_response();
        }
        self.handler.handle(head, body).await
    }
}

/// Returns the result of a request that the server is too busy for.
type RefuseIfBusy = Box<dyn Fn(&Value) -> Option<Value> + Send + Sync>;

struct Endpoint<S> {
    make_server: Box<dyn Fn(CancellationToken) -> S + Send + Sync>,
    refuse: RefuseIfBusy,
    sessions: Arc<LocalSessionManager>,
    open_sessions: Arc<Mutex<HashMap<String, OpenSession>>>,
    stop: CancellationToken,
}

struct OpenSession {
    /// Ends the session, and everything that runs in it.
    stop: CancellationToken,
    /// The negotiated revision; empty before the end of the handshake.
    version: String,
}

impl<S: Service<RoleServer>> Handler for Endpoint<S> {
    fn handle<'a>(&'a self, head: &'a Parts, body: &'a [u8]) -> BoxFuture<'a, Response<HttpBody>> {
        Box::pin(async move {
            let answer = match head.method {
                Method::POST => self.post(head, body).await,
                Method::GET => self.get(head).await,
                Method::DELETE => self.delete(head),
                _ => Err(Refusal::method("GET, POST, DELETE")),
            };
            answer.unwrap_or_else(Refusal::into_response)
        })
    }
}

impl<S: Service<RoleServer>> Endpoint<S> {
    fn new(
        make_server: impl Fn(CancellationToken) -> S + Send + Sync + 'static,
        refuse: impl Fn(&Value) -> Option<Value> + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> Endpoint<S> {
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(SESSION_IDLE);
        Endpoint {
            make_server: Box::new(make_server),
            refuse: Box::new(refuse),
            sessions: Arc::new(sessions),
            open_sessions: Arc::default(),
            stop,
        }
    }

    async fn post(&self, head: &Parts, body: &[u8]) -> Result<Response<HttpBody>, Refusal> {
        if body.trim_ascii_start().starts_with(b"[") {
            return self.post_batch(head, body).await;
        }
        let parsed = serde_json::from_slice::<Value>(body)
            .and_then(|raw| request::parse_message(raw, body, &head.headers));
        let (raw, message) = parsed.map_err(|error| {
            Refusal::json(StatusCode::BAD_REQUEST, stdio::explain_parse_error(body, &error))
        })?;
        request::check_accept(&head.headers)?;
        match request::classify(&head.headers, &raw, request::is_initialize(&message))? {
            Era::Sessions => self.post_to_session(message, head).await,
            Era::SingleRequests => self.answer_single(message, &raw).await,
        }
    }

    /// Answers one request of a client without a session. A client that closes the stream cancels
    /// its request.
    async fn answer_single(
        &self,
        message: ClientJsonRpcMessage,
        raw: &Value,
    ) -> Result<Response<HttpBody>, Refusal> {
        match &message {
            ClientJsonRpcMessage::Request(_) => {}
            ClientJsonRpcMessage::Notification(_) => return Ok(empty(StatusCode::ACCEPTED)),
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {
                return Err(Refusal::invalid(raw, "nobody waits for this response"));
            }
        }
        if let Some(result) = (self.refuse)(raw) {
            let body = json!({"jsonrpc": "2.0", "id": raw.get("id"), "result": result});
            return Ok(with_retry_after(json_response(StatusCode::OK, &body), &body));
        }
        let stop = self.stop.child_token();
        let (transport, mut messages) = OneshotTransport::<RoleServer>::new(message);
        let server = (self.make_server)(stop.clone());
        let running = serve_directly_with_ct(server, transport, peer_info(raw), stop.clone());
        tokio::spawn(running.waiting());
        let guard = stop.drop_guard();
        let first = match tokio::time::timeout(PROMPT_ANSWER, messages.recv()).await {
            Ok(Some(last)) if sse::is_last(&last) => {
                let status = request::status_of(&last, raw);
                let body = serde_json::to_value(&last).unwrap_or_default();
                return Ok(with_retry_after(json_response(status, &body), &body));
            }
            Ok(Some(first)) => Some(first),
            Ok(None) => return Err(Refusal::internal()),
            Err(_) => None,
        };
        let messages = futures::stream::iter(first).chain(sse::until_last(messages));
        let events = messages.map(ServerSseMessage::from_message);
        Ok(sse::respond(events, guard, self.stop.clone()))
    }

    async fn post_to_session(
        &self,
        message: ClientJsonRpcMessage,
        head: &Parts,
    ) -> Result<Response<HttpBody>, Refusal> {
        let Some(id) = request::session_id(&head.headers)? else {
            return match request::is_initialize(&message) {
                true => self.open_session(message).await,
                false => Err(Refusal::plain(
                    StatusCode::BAD_REQUEST,
                    "there is no Mcp-Session-Id header; send initialize first",
                )),
            };
        };
        self.check_session(&id)?;
        let id = id.into();
        match message {
            ClientJsonRpcMessage::Request(_) => {
                let events = self.sessions.create_stream(&id, message).await;
                let events = events.map_err(|_| Refusal::no_session())?;
                // Closing this stream does not cancel: the client may resume it.
                Ok(sse::respond(events, (), self.stop.clone()))
            }
            ClientJsonRpcMessage::Notification(_)
            | ClientJsonRpcMessage::Response(_)
            | ClientJsonRpcMessage::Error(_) => {
                let taken = self.sessions.accept_message(&id, message).await;
                taken.map_err(|_| Refusal::no_session())?;
                Ok(empty(StatusCode::ACCEPTED))
            }
        }
    }

    async fn open_session(
        &self,
        message: ClientJsonRpcMessage,
    ) -> Result<Response<HttpBody>, Refusal> {
        if self.lock_sessions().len() >= MAX_SESSIONS {
            return Err(Refusal::busy("too many sessions are open; close one with DELETE"));
        }
        let created = self.sessions.create_session().await;
        let (id, transport) = created.map_err(|_| Refusal::internal())?;
        let stop = self.stop.child_token();
        let session = OpenSession { stop: stop.clone(), version: String::new() };
        self.lock_sessions().insert(id.to_string(), session);
        let server = (self.make_server)(stop.clone());
        let (sessions, opened) = (Arc::clone(&self.sessions), Arc::clone(&self.open_sessions));
        let closing = id.clone();
        tokio::spawn(async move {
            match server.serve_with_ct(transport, stop.clone()).await {
                Ok(running) => drop(running.waiting().await),
                Err(error) => tracing::info!(%error, "an MCP handshake over HTTP failed"),
            }
            stop.cancel();
            let _ = sessions.close_session(&closing).await;
            opened.lock().unwrap_or_else(PoisonError::into_inner).remove(&*closing);
        });
        let answer = self.sessions.initialize_session(&id, message).await;
        let answer = answer.map_err(|_| Refusal::internal())?;
        let body = serde_json::to_value(&answer).unwrap_or_default();
        let version = body.pointer("/result/protocolVersion").and_then(Value::as_str);
        if let (Some(version), Some(session)) = (version, self.lock_sessions().get_mut(&*id)) {
            session.version = version.to_owned();
        }
        let mut response = json_response(StatusCode::OK, &body);
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION_HEADER, id);
        }
        Ok(response)
    }

    /// Opens a stream for what the server sends by itself, or resumes a broken one.
    async fn get(&self, head: &Parts) -> Result<Response<HttpBody>, Refusal> {
        if request::is_modern_version(&head.headers) {
            return Err(Refusal::method("POST"));
        }
        if !request::accepts(&head.headers, "text/event-stream") {
            let why = "Accept must name text/event-stream";
            return Err(Refusal::plain(StatusCode::NOT_ACCEPTABLE, why));
        }
        request::check_known_version(&head.headers)?;
        let id = request::session_id(&head.headers)?.ok_or_else(Refusal::needs_session)?;
        self.check_session(&id)?;
        let id = id.into();
        if let Some(last) = head.headers.get("last-event-id") {
            let last = last.to_str().unwrap_or_default().to_owned();
            return Ok(match self.sessions.resume(&id, last).await {
                Ok(events) => sse::respond(events, (), self.stop.clone()),
                // An error status would make the client try again with the same event forever.
                Err(_) => sse::respond(futures::stream::empty(), (), self.stop.clone()),
            });
        }
        let events = self.sessions.create_standalone_stream(&id).await;
        let events = events.map_err(|_| Refusal::no_session())?;
        Ok(sse::respond(events, (), self.stop.clone()))
    }

    fn delete(&self, head: &Parts) -> Result<Response<HttpBody>, Refusal> {
        if request::is_modern_version(&head.headers) {
            return Err(Refusal::method("POST"));
        }
        let id = request::session_id(&head.headers)?.ok_or_else(Refusal::needs_session)?;
        // The task that serves the session removes it.
        let session = self.lock_sessions().remove(&id).ok_or_else(Refusal::no_session)?;
        session.stop.cancel();
        Ok(empty(StatusCode::NO_CONTENT))
    }

    fn check_session(&self, id: &str) -> Result<(), Refusal> {
        match self.lock_sessions().contains_key(id) {
            true => Ok(()),
            false => Err(Refusal::no_session()),
        }
    }

    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<String, OpenSession>> {
        self.open_sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says when to try again, if the call was refused because the server is busy.
fn with_retry_after(mut response: Response<HttpBody>, body: &Value) -> Response<HttpBody> {
    let meta = body.get("result").and_then(|result| result.get("_meta"));
    if let Some(seconds) = meta.and_then(|meta| meta.get(RETRY_META)?.as_u64()) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Returns what the server knows of a client that did not shake hands.
fn peer_info(raw: &Value) -> Option<InitializeRequestParams> {
    let version = request::meta_version(raw)?;
    let info = json!({
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "", "version": ""},
    });
    serde_json::from_value(info).ok()
}
