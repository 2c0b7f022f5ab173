//! Opens a connection to a remote server from a configuration entry.

use std::sync::Arc;

use codexec_mcp_config::{RemoteConfig, RemoteKind};
use codexec_types::{ServerName, clean_line, cut_text};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt},
    transport::Transport,
};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{RequestFailures, http::HttpTransport, link::LinkParts, sse::SseTransport};
use crate::{
    GatewaySettings,
    oauth::Account,
    secret::resolve_secret,
    upstream::{
        UpstreamError,
        client::UpstreamClient,
        connection::{ServerTransport, UpstreamConnection},
        server_events::ServerEvents,
    },
    web,
};

/// Connects and completes the handshake before `deadline`.
pub(in crate::upstream) async fn open(
    name: &ServerName,
    remote: &RemoteConfig,
    settings: &Arc<GatewaySettings>,
    server_events: ServerEvents,
    deadline: Instant,
) -> Result<UpstreamConnection, UpstreamError> {
    let closed = CancellationToken::new();
    let parts = LinkParts {
        client: build_client(settings).await?,
        url: remote.url.clone(),
        headers: resolve_headers(remote, settings).await?,
        account: Arc::new(Account::new(name, &remote.url, settings)),
        max_bytes: settings.line_bytes,
        closed,
        server_events,
    };
    let opened = timeout_at(deadline, async {
        match remote.kind {
            RemoteKind::Http => match open_http(parts.clone()).await {
                // An HTTP answer, but not in this protocol: an old SSE server answers the same way.
                Err(UpstreamError::Refused(why)) => {
                    let parts = LinkParts { closed: CancellationToken::new(), ..parts };
                    open_sse(parts).await.map_err(|_| UpstreamError::Start(why))
                }
                opened => opened,
            },
            RemoteKind::Sse => open_sse(parts).await,
        }
    });
    opened.await.unwrap_or_else(|_| {
        let seconds = settings.startup_timeout.as_secs_f32();
        Err(UpstreamError::Start(format!("it was not ready within {seconds} s")))
    })
}

/// Loading certificates takes milliseconds, too long for the event loop.
async fn build_client(settings: &Arc<GatewaySettings>) -> Result<reqwest::Client, UpstreamError> {
    let settings = settings.clone();
    let made = tokio::task::spawn_blocking(move || web::build_client(&settings)).await;
    let made = made.map_err(|_| UpstreamError::ShutDown)?;
    made.map_err(|err| UpstreamError::Start(web::describe_error(&err)))
}

async fn open_http(parts: LinkParts) -> Result<UpstreamConnection, UpstreamError> {
    let (closed, server_events) = (parts.closed.clone(), parts.server_events.clone());
    let http = HttpTransport::new(parts);
    let failures = http.failures();
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    shake_hands(http, lifecycle, failures, (closed, server_events)).await
}

async fn open_sse(parts: LinkParts) -> Result<UpstreamConnection, UpstreamError> {
    let (closed, server_events) = (parts.closed.clone(), parts.server_events.clone());
    let sse = SseTransport::open(parts).await?;
    let failures = sse.failures();
    shake_hands(sse, ClientLifecycleMode::Initialize, failures, (closed, server_events)).await
}

async fn shake_hands(
    transport: impl Transport<RoleClient> + 'static,
    lifecycle: ClientLifecycleMode,
    failures: Arc<RequestFailures>,
    (closed, server_events): (CancellationToken, ServerEvents),
) -> Result<UpstreamConnection, UpstreamError> {
    let client = UpstreamClient { server_events: server_events.clone() };
    match client.serve_with_lifecycle(transport, lifecycle).await {
        Ok(service) => Ok(UpstreamConnection::new(
            service,
            ServerTransport::Remote(failures),
            closed,
            server_events,
        )),
        Err(error) => Err(failures.end_reason().unwrap_or_else(|| handshake_error(&error))),
    }
}

/// Resolves the user's own headers. Errors name a header, never its value.
async fn resolve_headers(
    remote: &RemoteConfig,
    settings: &GatewaySettings,
) -> Result<HeaderMap, UpstreamError> {
    let mut headers = HeaderMap::new();
    for (name, secret) in &remote.headers {
        let wrong = |why: String| UpstreamError::Start(format!("`headers.{name}`: {why}"));
        let value = resolve_secret(secret, settings).await.map_err(|err| wrong(err.to_string()))?;
        let key = HeaderName::from_bytes(name.as_bytes());
        let key = key.map_err(|_| wrong("this is not a valid header name".to_owned()))?;
        let value = HeaderValue::from_str(value.trim());
        let mut value =
            value.map_err(|_| wrong("its value is not a valid header value".to_owned()))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

fn handshake_error(error: &ClientInitializeError) -> UpstreamError {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            UpstreamError::Start(format!("it refused the handshake: {}", error.message))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_error(fallback),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
            let versions = cut_text(&clean_line(&versions.join(", ")), 100);
            UpstreamError::Start(format!(
                "it supports only MCP versions that we do not ({versions})"
            ))
        }
        _ => UpstreamError::Start("MCP handshake failed".to_owned()),
    }
}
