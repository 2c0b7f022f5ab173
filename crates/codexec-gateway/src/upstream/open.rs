//! From an entry in a file to a server that has shaken hands, over whichever transport.

use std::sync::Arc;

use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    UpstreamError,
    client::Client,
    connection::{Connection, Wire},
    log::Log,
    process::{Started, start},
    stdio::Stdio,
};
use crate::{RemoteConfig, ServerConfig, Settings, StdioConfig, TransportConfig};

/// Connects and shakes hands, all before `deadline`.
pub(super) async fn open(
    config: &ServerConfig,
    settings: &Settings,
    deadline: Instant,
) -> Result<Connection, UpstreamError> {
    match &config.transport {
        TransportConfig::Stdio(program) => {
            let log = Log::of(settings, &config.name);
            open_stdio(program, log, settings, deadline).await
        }
        TransportConfig::Remote(remote) => open_remote(remote, settings, deadline).await,
    }
}

async fn open_stdio(
    program: &StdioConfig,
    log: Option<Log>,
    settings: &Settings,
    deadline: Instant,
) -> Result<Connection, UpstreamError> {
    let mut env = Vec::new();
    for (name, secret) in &program.env {
        let value = secret.value(settings).await;
        let value = value.map_err(|err| UpstreamError::Start(format!("`env.{name}`: {err}")))?;
        env.push((name.clone(), value));
    }
    let Started { leash, stdin, stdout } = start(program, &env, log, settings).map_err(|err| {
        UpstreamError::Start(format!("{:?} could not be started: {err}", program.command))
    })?;
    let life = leash.0.clone();
    let gone = CancellationToken::new();
    let changed = Arc::new(Notify::new());
    let client = Client { changed: changed.clone() };
    let stdio = Stdio::new((stdin, stdout), life.clone(), settings.line_bytes, gone.clone());
    // Not `Auto`: servers that start slowly, or exit at what they do not know, do not survive it.
    let handshake = client.serve_with_lifecycle(stdio, ClientLifecycleMode::Initialize);
    match timeout_at(deadline, handshake).await {
        Ok(Ok(service)) => Ok(Connection::new(service, Wire::Process(leash), gone, changed)),
        Ok(Err(ClientInitializeError::JsonRpcError(error))) => {
            Err(UpstreamError::Start(format!("it refused: {}", error.message)))
        }
        Ok(Err(_)) => {
            let epitaph = life.epitaph().await;
            Err(UpstreamError::Start(format!("no handshake: {epitaph}")))
        }
        Err(_) => {
            let seconds = settings.startup_timeout.as_secs_f32();
            let words = life.last_words();
            Err(UpstreamError::Start(format!("it was not ready within {seconds} s{words}")))
        }
    }
}

async fn open_remote(
    remote: &RemoteConfig,
    _settings: &Settings,
    _deadline: Instant,
) -> Result<Connection, UpstreamError> {
    Err(UpstreamError::Start(format!("{} is remote, which is not supported yet", remote.url)))
}
