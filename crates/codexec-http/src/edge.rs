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

use crate::api::{self, ApiError};
use crate::bridge;
use crate::callers::{CallerParts, TokenHolder, TokenHolders};
use crate::checks::{self, LocalEnd};
use crate::dashboard::{self, Asset};
use crate::error::{HttpError, json_response};
use crate::metrics::RequestCounts;
use crate::peers::{PeerGuard, Peers};
use crate::settings::HttpSettings;
use crate::tokens::{LiveTokens, TokenFile};
use crate::trace;

/// Returns toolsets by their names, joined with commas, or the default ones; `None` if there are no
/// such toolsets.
pub type ToolsetSource =
    Box<dyn Fn(Option<&str>) -> Option<(Vec<&'static str>, Toolsets)> + Send + Sync>;

/// The HTTP edge of one process.
pub struct HttpEdge {
    pub(crate) settings: HttpSettings,
    pub(crate) tokens: LiveTokens,
    callers: TokenHolders,
    pub(crate) parts: CallerParts,
    pub(crate) peers: Peers,
    pub(crate) started: Instant,
    counts: RequestCounts,
    /// MCPProxy's toolset, for its routes.
    pub(crate) mcpproxy: Arc<McpproxyTools>,
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
    Dashboard(&'static Asset),
    Live,
    Ready,
    Health,
    Metrics,
    /// A path below `/api/v1`.
    Api(&'a str),
    ApiPage,
    /// `POST /` of code-executor's bridge.
    BridgeCall,
    /// `GET /mcp/tools` of the same.
    BridgeTools,
    Mcp(Option<&'a str>),
}

impl Route<'_> {
    fn parse<'a>(method: &Method, path: &'a str) -> Option<Route<'a>> {
        if let Some(asset) = dashboard::find(method, path) {
            return Some(Route::Dashboard(asset));
        }
        Some(match path {
            "/live" | "/livez" => Route::Live,
            "/ready" | "/readyz" => Route::Ready,
            "/health" | "/healthz" => Route::Health,
            "/metrics" => Route::Metrics,
            "/api" | "/api/" => Route::ApiPage,
            "/" => Route::BridgeCall,
            "/mcp/tools" => Route::BridgeTools,
            "/mcp" | "/mcp/" => Route::Mcp(None),
            path => match path.strip_prefix(api::PREFIX) {
                Some(path) if path.starts_with('/') => Route::Api(path),
                Some(_) | None => Route::Mcp(Some(path.strip_prefix("/mcp/")?)),
            },
        })
    }

    /// Returns the word for metrics.
    fn label(&self, method: &Method) -> &'static str {
        match self {
            Route::Dashboard(_) => "dashboard",
            Route::Live => "live",
            Route::Ready => "ready",
            Route::Health => "health",
            Route::Metrics => "metrics",
            Route::Api(path) => api::label(method, path),
            Route::ApiPage => "api_page",
            Route::BridgeCall => "bridge_call",
            Route::BridgeTools => "bridge_tools",
            Route::Mcp(_) => "mcp",
        }
    }
}

impl HttpEdge {
    pub fn new(
        app: Arc<App>,
        home: &Path,
        policy: Arc<LivePolicy>,
        budget: TextBudget,
        toolsets: ToolsetSource,
        proxy: ProxySettings,
        settings: HttpSettings,
    ) -> HttpEdge {
        let parts = CallerParts {
            app,
            policy,
            budget,
            toolsets,
            requests_per_minute: settings.requests_per_minute,
            stop: CancellationToken::new(),
        };
        HttpEdge {
            tokens: LiveTokens::new(TokenFile::at(home)),
            callers: TokenHolders::default(),
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
        let (mut head, body) = request.into_parts();
        let begun = Instant::now();
        let mut span = trace::start_span(&self.parts.app.tracer, &mut head);
        let is_chunked = head.headers.contains_key(TRANSFER_ENCODING);
        let mut guard = None;
        let answer = self.try_answer(peer, &head, body, &mut guard).await;
        let route = Route::parse(&head.method, head.uri.path());
        let mut response = answer.unwrap_or_else(|error| match route {
            Some(Route::BridgeCall | Route::BridgeTools) => {
                bridge::refuse_request(error, self.settings.requests_per_minute)
            }
            _ => error.into_response(),
        });
        let route = route.map_or("other", |route| route.label(&head.method));
        trace::finish_span(&mut span, route, response.status());
        self.counts.add(&head.method, route, response.status(), begun.elapsed());
        let headers = response.headers_mut();
        headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
        if is_chunked {
            // THREAT[HTTP-8]: a proxy that reads the length of such a request in another way would
            // take the rest of the connection for another request.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        match guard {
            Some(guard) => response.map(|body| hold_until_sent(body, guard)),
            None => response,
        }
    }

    async fn try_answer(
        &self,
        peer: Peer,
        head: &Parts,
        body: Incoming,
        guard: &mut Option<PeerGuard>,
    ) -> Result<Response<HttpBody>, HttpError> {
        checks::check_head(head, peer.local, &self.settings.hosts)?;
        // THREAT[HTTP-6]: behind a balancer, requests are counted for the address that it names.
        let is_proxy = |address| self.settings.is_trusted_proxy(address);
        if peer.address.is_some_and(is_proxy) {
            let client = checks::forwarded_for(&head.headers, is_proxy);
            *guard = Some(self.peers.enter(client).ok_or(HttpError::Connections)?);
        }
        let route = Route::parse(&head.method, head.uri.path());
        match route {
            Some(Route::Dashboard(asset)) => return Ok(asset.answer(head)),
            Some(Route::Live) => return get_only(head, || status(StatusCode::OK, "live")),
            Some(Route::Ready) => return get_only(head, || self.answer_ready()),
            Some(Route::ApiPage) => return get_only(head, api::page),
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
            Some(Route::Api(path)) => {
                let answer = self.answer_api(head, body, &caller, path).await;
                Ok(answer.unwrap_or_else(ApiError::into_response))
            }
            Some(route @ (Route::BridgeCall | Route::BridgeTools)) => {
                self.answer_bridge(head, body, &caller, &route).await
            }
            Some(
                Route::Dashboard(_) | Route::Live | Route::Ready | Route::Health | Route::ApiPage,
            )
            | None => Err(HttpError::NotFound),
        }
    }

    fn authenticate(&self, head: &Parts) -> Result<Arc<TokenHolder>, HttpError> {
        let token = checks::token(&head.headers).ok_or(HttpError::NoToken)?;
        let record = self.tokens.find(token, SystemTime::now()).ok_or(HttpError::NoToken)?;
        self.callers.get(&record, &self.tokens.list(), &self.parts)
    }

    async fn answer_mcp(
        &self,
        head: &Parts,
        body: Incoming,
        caller: &TokenHolder,
        toolsets: Option<&str>,
    ) -> Result<Response<HttpBody>, HttpError> {
        let endpoint = match toolsets.and_then(|path| path.strip_prefix("server/")) {
            Some(server) => caller.server_endpoint(server, &self.parts)?,
            None => caller.endpoint(toolsets, &self.parts)?,
        };
        let body = match head.method {
            Method::POST => self.read_json(head, body).await?,
            _ => Bytes::new(),
        };
        Ok(endpoint.mcp.handle(head, &body).await)
    }

    /// Answers a request to code-executor's bridge. Its token must allow that toolset.
    async fn answer_bridge(
        &self,
        head: &Parts,
        body: Incoming,
        caller: &TokenHolder,
        route: &Route<'_>,
    ) -> Result<Response<HttpBody>, HttpError> {
        let toolset = Seed::CodeExecutor.toolset();
        let endpoint = caller.endpoint(Some(toolset), &self.parts)?;
        let (app, connection) = (&self.parts.app, &endpoint.connection);
        if *route == Route::BridgeTools {
            if head.method != Method::GET && head.method != Method::HEAD {
                return Err(HttpError::Method("GET".to_owned()));
            }
            let words = api::query_value(head, "q").ok_or(HttpError::Query)?;
            return Ok(bridge::find(app, connection, words).await);
        }
        if head.method != Method::POST {
            return Err(HttpError::NotFound);
        }
        let body = self.read_json(head, body).await?;
        Ok(bridge::call(app, connection, &body).await)
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

    pub(crate) async fn read_json(&self, head: &Parts, body: Incoming) -> Result<Bytes, HttpError> {
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
        caller: Option<Arc<TokenHolder>>,
    ) -> Result<Response<HttpBody>, HttpError> {
        if head.method != Method::GET && head.method != Method::HEAD {
            return Err(HttpError::Method("GET".to_owned()));
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

/// Counts a request until the end of its response, which may be a stream.
fn hold_until_sent(body: HttpBody, guard: PeerGuard) -> HttpBody {
    let body = body.map_frame(move |frame| {
        let _held = &guard;
        frame
    });
    body.boxed_unsync()
}

fn get_only(
    head: &Parts,
    answer: impl FnOnce() -> Response<HttpBody>,
) -> Result<Response<HttpBody>, HttpError> {
    match head.method {
        Method::GET | Method::HEAD => Ok(answer()),
        _ => Err(HttpError::Method("GET".to_owned())),
    }
}

fn status(status: StatusCode, word: &str) -> Response<HttpBody> {
    json_response(status, &json!({"status": word}))
}
