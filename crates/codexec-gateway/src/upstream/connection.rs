//! One running server: the handshake, its list of tools, and requests to it.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    handler::client::ClientHandler,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientCapabilities, ClientConfig,
        ClientNotification, ClientRequest, ErrorCode, Implementation, ProtocolVersion, RequestId,
        ServerResult,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, Peer,
        PeerRequestOptions, RunningServiceCancellationToken, ServiceError,
    },
};
use serde_json::Value;
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    UpstreamError,
    process::{Leash, Started, start},
    stdio::Stdio,
};
use crate::{ServerConfig, Settings};

/// Dropping it kills the server.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    service: std::sync::Mutex<Option<RunningServiceCancellationToken>>,
    leash: Leash,
    /// The server will say nothing more.
    gone: CancellationToken,
    /// It said that its tools have changed.
    pub(super) changed: Arc<Notify>,
}

impl Connection {
    /// Starts the server and shakes hands, all before `deadline`.
    pub(super) async fn open(
        config: &ServerConfig,
        settings: &Settings,
        deadline: Instant,
    ) -> Result<Connection, UpstreamError> {
        let Started { leash, stdin, stdout } = start(config, settings).map_err(|err| {
            UpstreamError::Start(format!("{:?} could not be started: {err}", config.command))
        })?;
        let life = leash.0.clone();
        let gone = CancellationToken::new();
        let changed = Arc::new(Notify::new());
        let client = Client { changed: changed.clone() };
        let stdio = Stdio::new((stdin, stdout), life.clone(), settings.line_bytes, gone.clone());
        let handshake = client.serve_with_lifecycle(stdio, ClientLifecycleMode::Initialize);
        let service = match timeout_at(deadline, handshake).await {
            Ok(Ok(service)) => service,
            Ok(Err(ClientInitializeError::JsonRpcError(error))) => {
                return Err(UpstreamError::Start(format!("it refused: {}", error.message)));
            }
            Ok(Err(_)) => {
                let epitaph = life.epitaph().await;
                return Err(UpstreamError::Start(format!("no handshake: {epitaph}")));
            }
            Err(_) => {
                let seconds = settings.startup_timeout.as_secs_f32();
                let words = life.last_words();
                return Err(UpstreamError::Start(format!(
                    "it was not ready within {seconds} s{words}"
                )));
            }
        };
        let peer = service.peer().clone();
        let service_token = service.cancellation_token();
        // rmcp's loop runs in its own task; it ends with the transport or by our token.
        tokio::spawn(service.waiting());
        let service = std::sync::Mutex::new(Some(service_token));
        Ok(Connection { peer, service, leash, gone, changed })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.leash.0.pid()
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Sends a request and gives its raw result. Dropping the future tells the server.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<Value, UpstreamError> {
        let deadline = Instant::now() + limit;
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut handle = match timeout_at(deadline, sent).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(_)) => return Err(self.ended().await),
            Err(_) => return Err(UpstreamError::Timeout(limit)),
        };
        let mut pending = Pending { peer: &self.peer, id: Some(handle.id.clone()) };
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer.ok(),
            () = self.gone.cancelled() => None,
            () = tokio::time::sleep_until(deadline) => return Err(UpstreamError::Timeout(limit)),
        };
        pending.id = None;
        match answer {
            Some(Ok(ServerResult::CustomResult(result))) => Ok(result.0),
            Some(Err(ServiceError::McpError(error))) => Err(refusal(error.code, &error.message)),
            Some(Err(ServiceError::TransportSend(error))) => {
                Err(UpstreamError::Refused(error.error.to_string()))
            }
            Some(Ok(_) | Err(_)) | None => Err(self.ended().await),
        }
    }

    /// Closes the server's input, and ends what does not end by itself.
    pub(super) async fn close(&self) {
        let token = self.service.lock().ok().and_then(|mut service| service.take());
        if let Some(token) = token {
            token.cancel();
        }
        self.leash.0.end().await;
    }

    pub(super) fn kill(&self) {
        self.leash.0.kill();
    }

    pub(super) async fn ended(&self) -> UpstreamError {
        UpstreamError::Ended(self.leash.0.epitaph().await)
    }
}

fn refusal(code: ErrorCode, message: &str) -> UpstreamError {
    if code == ErrorCode::METHOD_NOT_FOUND {
        UpstreamError::NoSuchMethod
    } else {
        UpstreamError::Refused(message.to_owned())
    }
}

/// A request that nobody waits for any more is cancelled.
struct Pending<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let reason = Some("the caller is gone".to_owned());
        let cancelled =
            CancelledNotification::new(CancelledNotificationParam::new(Some(id), reason));
        let peer = self.peer.clone();
        runtime.spawn(async move {
            // A server that cannot be told has ended, and the request with it.
            let _ =
                peer.send_notification(ClientNotification::CancelledNotification(cancelled)).await;
        });
    }
}

/// What we are to an upstream: a client that can do nothing but call.
struct Client {
    changed: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("codexec", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), name)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}
