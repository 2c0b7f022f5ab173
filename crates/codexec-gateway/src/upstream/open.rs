//! Opens a connection from a configuration entry, over either transport.

use std::sync::Arc;

use codexec_mcp_config::{ServerConfig, StdioConfig, TransportConfig};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    UpstreamError,
    call_pipe::CallPipe,
    client::UpstreamClient,
    connection::{ServerTransport, UpstreamConnection},
    log::ServerLog,
    process::{SpawnedServer, spawn},
    remote,
    server_events::ServerEvents,
    start::plan,
    stdin_writer::StdinWriter,
    stdio::StdioTransport,
};
use crate::{GatewaySettings, secret::resolve_secret};

/// Connects and completes the handshake before `deadline`.
pub(super) async fn open(
    config: &ServerConfig,
    settings: &Arc<GatewaySettings>,
    server_events: ServerEvents,
    deadline: Instant,
) -> Result<UpstreamConnection, UpstreamError> {
    match &config.transport {
        TransportConfig::Stdio(program) => {
            let log = ServerLog::new(settings, &config.name);
            open_stdio(program, log, settings, server_events, deadline).await
        }
        TransportConfig::Remote(remote) => {
            remote::open(&config.name, remote, settings, server_events, deadline).await
        }
    }
}

async fn open_stdio(
    program: &StdioConfig,
    log: Option<ServerLog>,
    settings: &GatewaySettings,
    server_events: ServerEvents,
    deadline: Instant,
) -> Result<UpstreamConnection, UpstreamError> {
    let mut env = Vec::new();
    for (name, secret) in &program.env {
        let value = resolve_secret(secret, settings).await;
        let value = value.map_err(|err| UpstreamError::Start(format!("`env.{name}`: {err}")))?;
        env.push((name.clone(), value));
    }
    let refused = |why: String| UpstreamError::Start(format!("{:?} {why}", program.command));
    let plan = plan(program, &env, settings).map_err(|err| refused(err.to_string()))?;
    let spawned = spawn(&plan, log, settings);
    let SpawnedServer { guard, stdin, stdout } =
        spawned.map_err(|err| refused(format!("could not be started: {err}")))?;
    let process = guard.0.clone();
    let closed = CancellationToken::new();
    let client = UpstreamClient { server_events: server_events.clone() };
    let stdin = StdinWriter::new(stdin, process.clone());
    let stdin =
        stdin.map_err(|err| UpstreamError::Start(format!("cannot open its stdin: {err}")))?;
    let call_pipe = Arc::new(CallPipe::new(stdin));
    let pipes = (&*call_pipe, stdout);
    let stdio = StdioTransport::new(
        pipes,
        process.clone(),
        settings.line_bytes,
        closed.clone(),
        server_events.clone(),
    );
    // Not `Auto`: servers that start slowly, or exit on unknown methods, do not survive it.
    let handshake = client.serve_with_lifecycle(stdio, ClientLifecycleMode::Initialize);
    match timeout_at(deadline, handshake).await {
        Ok(Ok(service)) => Ok(UpstreamConnection::new(
            service,
            ServerTransport::Process(guard, call_pipe),
            closed,
            server_events,
        )),
        Ok(Err(ClientInitializeError::JsonRpcError(error))) => {
            Err(UpstreamError::Start(format!("it refused the handshake: {}", error.message)))
        }
        Ok(Err(_)) => {
            let end = process.describe_end().await;
            Err(UpstreamError::Start(format!("MCP handshake failed: {end}")))
        }
        Err(_) => {
            let seconds = settings.startup_timeout.as_secs_f32();
            let stderr = process.stderr_tail();
            Err(UpstreamError::Start(format!("it was not ready within {seconds} s{stderr}")))
        }
    }
}
