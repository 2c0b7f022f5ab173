//! Opens a connection from a configuration entry, over either transport.

use std::sync::Arc;

use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    UpstreamError,
    client::Client,
    connection::{Connection, News, Wire},
    lane::Lane,
    log::Log,
    outbox::Outbox,
    process::{Started, start},
    remote,
    start::plan,
    stdio::Stdio,
};
use crate::{ServerConfig, Settings, StdioConfig, TransportConfig};

/// Connects and completes the handshake before `deadline`.
pub(super) async fn open(
    config: &ServerConfig,
    settings: &Arc<Settings>,
    deadline: Instant,
) -> Result<Connection, UpstreamError> {
    match &config.transport {
        TransportConfig::Stdio(program) => {
            let log = Log::of(settings, &config.name);
            open_stdio(program, log, settings, deadline).await
        }
        TransportConfig::Remote(remote) => {
            remote::open(&config.name, remote, settings, deadline).await
        }
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
    let refused = |why: String| UpstreamError::Start(format!("{:?} {why}", program.command));
    let plan = plan(program, &env, settings).map_err(|err| refused(err.to_string()))?;
    let started = start(&plan, log, settings);
    let Started { leash, stdin, stdout } =
        started.map_err(|err| refused(format!("could not be started: {err}")))?;
    let life = leash.0.clone();
    let gone = CancellationToken::new();
    let news = News::default();
    let client = Client { news: news.clone() };
    let outbox = Outbox::new(stdin, life.clone());
    let outbox = outbox.map_err(|err| UpstreamError::Start(format!("its input: {err}")))?;
    let lane = Arc::new(Lane::new(outbox));
    let pipes = (&*lane, stdout);
    let stdio = Stdio::new(pipes, life.clone(), settings.line_bytes, gone.clone(), news.clone());
    // Not `Auto`: servers that start slowly, or exit on unknown methods, do not survive it.
    let handshake = client.serve_with_lifecycle(stdio, ClientLifecycleMode::Initialize);
    match timeout_at(deadline, handshake).await {
        Ok(Ok(service)) => Ok(Connection::new(service, Wire::Process(leash, lane), gone, news)),
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
