//! Opens a connection to a remote server from a configuration entry.

use std::sync::Arc;

use codexec_types::ServerName;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt},
    transport::Transport,
};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Troubles, http::Http, link::Ends, sse::Sse};
use crate::{
    RemoteConfig, RemoteKind, Settings,
    clean::{clean_line, cut},
    oauth::Account,
    upstream::{
        UpstreamError,
        client::Client,
        connection::{Connection, News, Wire},
    },
    web,
};

/// Connects and completes the handshake before `deadline`.
pub(in crate::upstream) async fn open(
    name: &ServerName,
    remote: &RemoteConfig,
    settings: &Arc<Settings>,
    deadline: Instant,
) -> Result<Connection, UpstreamError> {
    let gone = CancellationToken::new();
    let ends = Ends {
        client: client(settings).await?,
        url: remote.url.clone(),
        headers: header_map(remote, settings).await?,
        account: Arc::new(Account::new(name, &remote.url, settings)),
        max_bytes: settings.line_bytes,
        gone,
        news: News::default(),
    };
    let opened = timeout_at(deadline, async {
        match remote.kind {
            RemoteKind::Http => match open_http(ends.clone()).await {
                // It answers HTTP but not this protocol; an old server would do the same.
                Err(UpstreamError::Refused(why)) => {
                    let ends = Ends { gone: CancellationToken::new(), ..ends };
                    open_sse(ends).await.map_err(|_| UpstreamError::Start(why))
                }
                opened => opened,
            },
            RemoteKind::Sse => open_sse(ends).await,
        }
    });
    opened.await.unwrap_or_else(|_| {
        let seconds = settings.startup_timeout.as_secs_f32();
        Err(UpstreamError::Start(format!("it was not ready within {seconds} s")))
    })
}

/// Loading certificates takes milliseconds, too long for the event loop.
async fn client(settings: &Arc<Settings>) -> Result<reqwest::Client, UpstreamError> {
    let settings = settings.clone();
    let made = tokio::task::spawn_blocking(move || web::client(&settings)).await;
    let made = made.map_err(|_| UpstreamError::ShutDown)?;
    made.map_err(|err| UpstreamError::Start(web::why(&err)))
}

async fn open_http(ends: Ends) -> Result<Connection, UpstreamError> {
    let (gone, news) = (ends.gone.clone(), ends.news.clone());
    let http = Http::new(ends);
    let troubles = http.troubles();
    let lifecycle = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    shake_hands(http, lifecycle, troubles, (gone, news)).await
}

async fn open_sse(ends: Ends) -> Result<Connection, UpstreamError> {
    let (gone, news) = (ends.gone.clone(), ends.news.clone());
    let sse = Sse::open(ends).await?;
    let troubles = sse.troubles();
    shake_hands(sse, ClientLifecycleMode::Initialize, troubles, (gone, news)).await
}

async fn shake_hands(
    transport: impl Transport<RoleClient> + 'static,
    lifecycle: ClientLifecycleMode,
    troubles: Arc<Troubles>,
    (gone, news): (CancellationToken, News),
) -> Result<Connection, UpstreamError> {
    let client = Client { news: news.clone() };
    match client.serve_with_lifecycle(transport, lifecycle).await {
        Ok(service) => Ok(Connection::new(service, Wire::Remote(troubles), gone, news)),
        Err(error) => Err(troubles.why_ended().unwrap_or_else(|| refused(&error))),
    }
}

/// Resolves the user's own headers. Errors name a header, never its value.
async fn header_map(
    remote: &RemoteConfig,
    settings: &Settings,
) -> Result<HeaderMap, UpstreamError> {
    let mut headers = HeaderMap::new();
    for (name, secret) in &remote.headers {
        let wrong = |why: String| UpstreamError::Start(format!("`headers.{name}`: {why}"));
        let value = secret.value(settings).await.map_err(|err| wrong(err.to_string()))?;
        let key = HeaderName::from_bytes(name.as_bytes());
        let key = key.map_err(|_| wrong("this is not the name of a header".to_owned()))?;
        let value = HeaderValue::from_str(value.trim());
        let mut value = value.map_err(|_| wrong("its value cannot be sent".to_owned()))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

fn refused(error: &ClientInitializeError) -> UpstreamError {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            UpstreamError::Start(format!("it refused: {}", error.message))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => refused(fallback),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
            let versions = cut(&clean_line(&versions.join(", ")), 100);
            UpstreamError::Start(format!("it speaks versions of MCP that we do not ({versions})"))
        }
        _ => UpstreamError::Start("no handshake".to_owned()),
    }
}
