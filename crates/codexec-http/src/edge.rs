//! The life of a request: checks, token, route, answer.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use codexec_compat::{McpproxyTools, ProxySettings, Seed};
use codexec_server::mcp::{self, HttpBody, Toolsets};
use codexec_server::{App, LivePolicy, TextBudget, write_metrics};
use http::header::{CONNECTION, CONTENT_TYPE, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::callers::{Caller, CallerParts, Callers};
use crate::checks::{self, LocalEnd};
use crate::code_api;
use crate::error::{HttpError, json_response};
use crate::metrics::RequestCounts;
use crate::peers::Peers;
use crate::settings::HttpSettings;
use crate::tokens::{LiveTokens, TokenFile};

/// Returns toolsets by their names, joined with commas, or the default ones; `None` if there are no
/// such toolsets.
pub type ToolsetSource =
    Box<dyn Fn(Option<&str>) -> Option<(Vec<&'static str>, Toolsets)> + Send + Sync>;

/// The HTTP edge of one process.
pub struct Edge {
    pub(crate) settings: HttpSettings,
    tokens: LiveTokens,
    callers: Callers,
    parts: CallerParts,
    pub(crate) peers: Peers,
    started: Instant,
    counts: RequestCounts,
    /// MCPProxy's toolset, for its routes.
    mcpproxy: Arc<McpproxyTools>,
    is_ready: AtomicBool,
    /// Cancelled when no new requests are taken.
    pub(crate) draining: CancellationToken,
}

/// The other end of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    /// `None` for a Unix socket.
    pub(crate) address: Option<IpAddr>,
    pub(crate) local: LocalEnd,
}

/// The destination of a request, read from its path.
#[derive(Debug, PartialEq, Eq)]
enum Route<'a> {
    Live,
    Ready,
    Health,
    Metrics,
    CodeExec,
    CodeScripts,
    Mcp(Option<&'a str>),
}

impl Route<'_> {
    fn parse(path: &str) -> Option<Route<'_>> {
        Some(match path {
            "/live" | "/livez" => Route::Live,
            "/ready" | "/readyz" => Route::Ready,
            "/health" | "/healthz" => Route::Health,
            "/metrics" => Route::Metrics,
            "/api/v1/code/exec" => Route::CodeExec,
            "/api/v1/code/scripts" => Route::CodeScripts,
            "/mcp" | "/mcp/" => Route::Mcp(None),
            path => Route::Mcp(Some(path.strip_prefix("/mcp/")?)),
        })
    }

    /// Returns the word for metrics.
    fn label(&self) -> &'static str {
        match self {
            Route::Live => "live",
            Route::Ready => "ready",
            Route::Health => "health",
            Route::Metrics => "metrics",
            Route::CodeExec => "code_exec",
            Route::CodeScripts => "code_scripts",
            Route::Mcp(_) => "mcp",
        }
    }
}

impl Edge {
    pub fn new(
        app: Arc<App>,
        home: &Path,
        policy: Arc<LivePolicy>,
        budget: TextBudget,
        toolsets: ToolsetSource,
        proxy: ProxySettings,
        settings: HttpSettings,
    ) -> Edge {
        let parts = CallerParts {
            app,
            policy,
            budget,
            toolsets,
            requests_per_minute: settings.requests_per_minute,
            stop: CancellationToken::new(),
        };
        Edge {
            tokens: LiveTokens::new(TokenFile::at(home)),
            callers: Callers::default(),
            parts,
            peers: Peers::new(settings.connections_per_peer),
            settings,
            started: Instant::now(),
            counts: RequestCounts::default(),
            mcpproxy: Arc::new(McpproxyTools::new(proxy)),
            is_ready: AtomicBool::new(false),
            draining: CancellationToken::new(),
        }
    }

    /// Says that executions can start without delay.
    pub fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Relaxed);
    }

    /// Takes no new requests and connections; running requests continue.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Ends all streams and sessions.
    pub fn end_streams(&self) {
        self.parts.stop.cancel();
    }

    pub(crate) async fn answer(
        &self,
        peer: Peer,
        request: Request<Incoming>,
    ) -> Response<HttpBody> {
        let (head, body) = request.into_parts();
        let begun = Instant::now();
        let is_chunked = head.headers.contains_key(TRANSFER_ENCODING);
        let answer = self.try_answer(peer, &head, body).await;
        let mut response = answer.unwrap_or_else(HttpError::into_response);
        let route = Route::parse(head.uri.path()).map_or("other", |route| route.label());
        self.counts.add(route, response.status(), begun.elapsed());
        let headers = response.headers_mut();
        headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
        if is_chunked {
            // THREAT[HTTP-8]: a proxy that reads the length of such a request in another way would
            // take the rest of the connection for another request.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn try_answer(
        &self,
        peer: Peer,
        head: &Parts,
        body: Incoming,
    ) -> Result<Response<HttpBody>, HttpError> {
        checks::check_head(head, peer.local, &self.settings.hosts)?;
        // THREAT[HTTP-6]: behind a balancer, requests are counted for the address that it names.
        let is_proxy = |address| self.settings.is_trusted_proxy(address);
        let _guard = match peer.address.filter(|address| is_proxy(*address)) {
            Some(_) => {
                let client = checks::forwarded_for(&head.headers, is_proxy);
                Some(self.peers.enter(client).ok_or(HttpError::Connections)?)
            }
            None => None,
        };
        let route = Route::parse(head.uri.path());
        match route {
            Some(Route::Live) => return get_only(head, || status(StatusCode::OK, "live")),
            Some(Route::Ready) => return get_only(head, || self.answer_ready()),
            _ => {}
        }
        let caller = self.authenticate(head);
        if route == Some(Route::Health) {
            return self.answer_health(head, caller.ok()).await;
        }
        if route == Some(Route::Metrics) && self.settings.public_metrics {
            return get_only(head, || self.answer_metrics(|_| true));
        }
        let caller = caller?;
        caller
            .rate
            .take(Instant::now())
            .map_err(|wait| HttpError::RateLimit { retry_s: wait.as_secs().max(1) })?;
        if self.draining.is_cancelled() {
            return Err(HttpError::Stopping);
        }
        match route {
            Some(Route::Mcp(toolsets)) => self.answer_mcp(head, body, &caller, toolsets).await,
            Some(Route::Metrics) => {
                let policy = caller.endpoint(None, &self.parts)?.connection.policy();
                get_only(head, || self.answer_metrics(|server| policy.tools.allows_server(server)))
            }
            Some(Route::CodeExec | Route::CodeScripts) => {
                self.answer_code(head, body, &caller, route == Some(Route::CodeExec)).await
            }
            Some(Route::Live | Route::Ready | Route::Health) | None => Err(HttpError::NotFound),
        }
    }

    fn authenticate(&self, head: &Parts) -> Result<Arc<Caller>, HttpError> {
        let token = checks::token(&head.headers).ok_or(HttpError::NoToken)?;
        let record = self.tokens.find(token, SystemTime::now()).ok_or(HttpError::NoToken)?;
        self.callers.get(&record, &self.tokens.list(), &self.parts)
    }

    async fn answer_mcp(
        &self,
        head: &Parts,
        body: Incoming,
        caller: &Caller,
        toolsets: Option<&str>,
    ) -> Result<Response<HttpBody>, HttpError> {
        let endpoint = caller.endpoint(toolsets, &self.parts)?;
        let body = match head.method {
            Method::POST => self.read_json(head, body).await?,
            _ => Bytes::new(),
        };
        Ok(endpoint.mcp.handle(head, &body).await)
    }

    /// Answers a route of MCPProxy. Its token must allow that toolset.
    async fn answer_code(
        &self,
        head: &Parts,
        body: Incoming,
        caller: &Caller,
        is_exec: bool,
    ) -> Result<Response<HttpBody>, HttpError> {
        let endpoint = caller.endpoint(Some(Seed::Mcpproxy.toolset()), &self.parts)?;
        match (is_exec, &head.method) {
            (true, &Method::POST) => {
                let body = self.read_json(head, body).await?;
                let app = &self.parts.app;
                Ok(code_api::exec(app, &self.mcpproxy, &endpoint.connection, &body).await)
            }
            (true, _) => Err(HttpError::Method("POST")),
            (false, &Method::GET | &Method::HEAD) => {
                Ok(code_api::scripts(&self.parts.app, &self.mcpproxy).await)
            }
            (false, _) => Err(HttpError::Method("GET")),
        }
    }

    /// THREAT[HTTP-3]: a token sees numbers only of servers that it may use, and none of others'
    /// tokens.
    fn answer_metrics(&self, sees: impl Fn(&str) -> bool) -> Response<HttpBody> {
        let text = self.counts.write() + &write_metrics(&self.parts.app, sees);
        let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
        let kind = HeaderValue::from_static("text/plain; version=0.0.4");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }

    async fn read_json(&self, head: &Parts, body: Incoming) -> Result<Bytes, HttpError> {
        checks::check_content_type(&head.headers)?;
        let (max, timeout) = (self.settings.max_body_bytes, self.settings.body_timeout);
        let body = checks::read_body(body, max, timeout).await?;
        checks::check_json(&body)?;
        Ok(body)
    }

    fn answer_ready(&self) -> Response<HttpBody> {
        match (self.draining.is_cancelled(), self.is_ready.load(Ordering::Relaxed)) {
            (true, _) => status(StatusCode::SERVICE_UNAVAILABLE, "stopping"),
            (false, true) => status(StatusCode::OK, "ready"),
            (false, false) => status(StatusCode::SERVICE_UNAVAILABLE, "starting"),
        }
    }

    async fn answer_health(
        &self,
        head: &Parts,
        caller: Option<Arc<Caller>>,
    ) -> Result<Response<HttpBody>, HttpError> {
        if head.method != Method::GET && head.method != Method::HEAD {
            return Err(HttpError::Method("GET"));
        }
        let word = match mcp::is_healthy(&self.parts.app).await {
            true => "ok",
            false => "degraded",
        };
        let Some(caller) = caller else { return Ok(status(StatusCode::OK, word)) };
        let endpoint = caller.endpoint(None, &self.parts)?;
        let report = mcp::health_report(&self.parts.app, &endpoint.connection, self.started).await;
        let mut health = json!({"status": word});
        if let (Some(health), Some(report)) = (health.as_object_mut(), report.as_object()) {
            health.extend(report.clone());
        }
        Ok(json_response(StatusCode::OK, &health))
    }
}

fn get_only(
    head: &Parts,
    answer: impl FnOnce() -> Response<HttpBody>,
) -> Result<Response<HttpBody>, HttpError> {
    match head.method {
        Method::GET | Method::HEAD => Ok(answer()),
        _ => Err(HttpError::Method("GET")),
    }
}

fn status(status: StatusCode, word: &str) -> Response<HttpBody> {
    json_response(status, &json!({"status": word}))
}
