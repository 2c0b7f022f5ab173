//! A connection to one running server: requests to it, and its end.

use std::{sync::Arc, time::Duration};

use codexec_types::{ServerName, cut_text};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
        ClientNotification, ClientRequest, ErrorCode, ErrorData, NumberOrString, ProgressToken,
        ProtocolVersion, RequestId, RequestMetaObject, ServerResult,
    },
    service::{
        Peer, PeerRequestOptions, RequestHandle, RunningService, RunningServiceCancellationToken,
        Service, ServiceError,
    },
};
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    UpstreamError,
    call_pipe::CallPipe,
    callers::CallerGuard,
    list_changes::ListChanges,
    process::{ProcessGuard, ServerProcess},
    progress::{OnProgress, ProgressSubscription},
    remote::RequestFailures,
    server_events::ServerEvents,
    stdin_writer::SendError,
};
use crate::{Caller, RpcError};

/// The limit on a server's reported name and version.
const VERSION_BYTES: usize = 500;

/// How long a remote server gets to close its session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection to a server. Dropping it kills a server that is our process.
pub(crate) struct UpstreamConnection {
    peer: Peer<RoleClient>,
    service: std::sync::Mutex<Option<RunningServiceCancellationToken>>,
    transport: ServerTransport,
    /// True if the protocol version needs more metadata per request than [`CallPipe`] sends.
    is_modern: bool,
    /// Cancelled when the server will send nothing more.
    closed: CancellationToken,
    server_events: ServerEvents,
}

/// Time limits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTimeouts {
    /// Without any progress.
    pub(super) idle: Duration,
    /// In total, whatever progress arrives.
    pub(super) total: Duration,
}

/// The transport of a connection.
pub(super) enum ServerTransport {
    Process(ProcessGuard, Arc<CallPipe>),
    Remote(Arc<RequestFailures>),
}

impl UpstreamConnection {
    /// `closed` is cancelled when nothing more will arrive.
    pub(super) fn new<S: Service<RoleClient>>(
        service: RunningService<RoleClient, S>,
        transport: ServerTransport,
        closed: CancellationToken,
        server_events: ServerEvents,
    ) -> UpstreamConnection {
        let peer = service.peer().clone();
        let token = service.cancellation_token();
        // rmcp's loop runs in its own task; it ends with the transport or by our token.
        tokio::spawn(service.waiting());
        let service = std::sync::Mutex::new(Some(token));
        let is_modern = peer
            .peer_info()
            .is_some_and(|info| info.protocol_version > ProtocolVersion::LATEST_WITH_INITIALIZE);
        UpstreamConnection { peer, service, transport, is_modern, closed, server_events }
    }

    /// Returns `None` if the server is not our process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.process().map(ServerProcess::pid)
    }

    fn process(&self) -> Option<&ServerProcess> {
        match &self.transport {
            ServerTransport::Process(guard, _) => Some(&guard.0),
            ServerTransport::Remote(_) => None,
        }
    }

    /// Returns true if the server speaks a protocol version without a handshake.
    pub(crate) fn is_modern(&self) -> bool {
        self.is_modern
    }

    /// Returns the capabilities that the server declares.
    pub(crate) fn capabilities(&self) -> Value {
        let info = self.peer.peer_info();
        let declared = info.map(|info| serde_json::to_value(&info.capabilities));
        declared.and_then(Result::ok).unwrap_or_default()
    }

    /// Returns the name and version that the server reports.
    pub(super) fn version(&self) -> Option<String> {
        let info = self.peer.peer_info()?;
        let info = info.server_info.as_ref()?;
        Some(cut_text(&format!("{} {}", info.name, info.version), VERSION_BYTES))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    pub(super) async fn wait_closed(&self) {
        self.closed.cancelled().await;
    }

    pub(super) fn changes(&self) -> &ListChanges {
        &self.server_events.changes
    }

    /// Calls a tool and returns its raw result. Dropping the future cancels the call.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        meta: Option<RequestMetaObject>,
        timeouts: CallTimeouts,
        (on_progress, caller_guard): (Option<OnProgress>, Option<&CallerGuard<'_>>),
    ) -> Result<Value, UpstreamError> {
        // A second round, which carries answers to the server's questions.
        let is_answer = params.request_state.is_some() || params.input_responses.is_some();
        let call_pipe = match &self.transport {
            ServerTransport::Process(_, call_pipe) if !self.is_modern && !is_answer => call_pipe,
            ServerTransport::Process(..) | ServerTransport::Remote(_) => {
                let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
                return self.ask(request, meta, timeouts, (on_progress, caller_guard)).await;
            }
        };
        let mut call = call_pipe.begin_call();
        let begun = Instant::now();
        let subscription = self.server_events.progress.subscribe(call.id, on_progress);
        match call.send(&params) {
            Ok(()) => {}
            Err(SendError::Closed) => return Err(self.end_error().await),
            Err(SendError::Backlog) => return Err(UpstreamError::Backlog),
            Err(err @ SendError::Unwritable(_)) => {
                return Err(UpstreamError::Unreachable(err.to_string()));
            }
        }
        // The request is sent; free the arguments while waiting for the answer.
        drop(params);
        let answer = tokio::select! {
            biased;
            answer = call.answer() => answer,
            () = self.closed.cancelled() => None,
            limit = timeouts.wait_until_exceeded(begun, Some(&subscription), caller_guard) => {
                return Err(UpstreamError::Timeout(limit));
            }
        };
        let Some(answer) = answer else { return Err(self.end_error().await) };
        answer.map_err(reply_error)
    }

    /// Sends a request and returns its raw result. Dropping the future cancels it.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<Value, UpstreamError> {
        self.ask(request, None, CallTimeouts { idle: limit, total: limit }, (None, None)).await
    }

    /// Sends a request whose timeout restarts at every progress notification and is paused during
    /// questions.
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        meta: Option<RequestMetaObject>,
        timeouts: CallTimeouts,
        (on_progress, caller_guard): (Option<OnProgress>, Option<&CallerGuard<'_>>),
    ) -> Result<Value, UpstreamError> {
        let begun = Instant::now();
        let mut options = PeerRequestOptions::no_options();
        // What the client of a relay declares replaces what we declare; older servers know only
        // the handshake.
        options.meta = meta.filter(|_| self.is_modern);
        let sent = self.peer.send_request_with_option(request, options);
        let mut handle = match timeout_at(begun + timeouts.idle, sent).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(_)) => return Err(self.end_error().await),
            Err(_) => return Err(UpstreamError::Timeout(timeouts.idle)),
        };
        let id = handle.id.clone();
        let mut pending = PendingRequest { peer: &self.peer, id: Some(id.clone()) };
        let subscription = self.subscribe_progress(&handle, on_progress);
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer.ok(),
            () = self.closed.cancelled() => None,
            limit = timeouts.wait_until_exceeded(begun, subscription.as_ref(), caller_guard) => {
                return Err(UpstreamError::Timeout(limit));
            }
        };
        pending.id = None;
        if let Some(failure) = self.request_failure(&id) {
            return Err(failure);
        }
        match answer {
            Some(Ok(ServerResult::CustomResult(result))) => Ok(result.0),
            Some(Err(ServiceError::McpError(error))) => Err(reply_error(error)),
            Some(Err(ServiceError::TransportSend(error))) => {
                Err(UpstreamError::Unreachable(error.error.to_string()))
            }
            Some(Ok(_) | Err(_)) | None => Err(self.end_error().await),
        }
    }

    /// Lets the server ask this caller questions until the guard is dropped.
    pub(super) fn register_caller(
        &self,
        server: &ServerName,
        caller: &Caller,
    ) -> Option<CallerGuard<'_>> {
        caller.can_answer().then(|| self.server_events.callers.register(server, caller))
    }

    fn subscribe_progress(
        &self,
        handle: &RequestHandle<RoleClient>,
        on_progress: Option<OnProgress>,
    ) -> Option<ProgressSubscription<'_>> {
        match handle.progress_token {
            ProgressToken(NumberOrString::Number(token)) => {
                Some(self.server_events.progress.subscribe(token, on_progress))
            }
            ProgressToken(NumberOrString::String(_)) => None,
        }
    }

    /// Closes the server's stdin, and kills the server if it does not exit.
    pub(super) async fn close(&self) {
        let token = self.service.lock().ok().and_then(|mut service| service.take());
        if let Some(token) = token {
            token.cancel();
        }
        match &self.transport {
            ServerTransport::Process(guard, _) => guard.0.stop().await,
            // The session is closed before the connection.
            ServerTransport::Remote(_) => {
                let _ = timeout(CLOSE_TIMEOUT, self.wait_closed()).await;
            }
        }
    }

    pub(super) fn kill(&self) {
        match &self.transport {
            ServerTransport::Process(guard, _) => guard.0.kill(),
            ServerTransport::Remote(_) => self.closed.cancel(),
        }
    }

    pub(super) async fn end_error(&self) -> UpstreamError {
        match &self.transport {
            ServerTransport::Process(guard, _) => {
                UpstreamError::Ended(guard.0.describe_end().await)
            }
            ServerTransport::Remote(failures) => match failures.end_reason() {
                Some(UpstreamError::Start(why)) => UpstreamError::Ended(why),
                Some(error) => error,
                None => UpstreamError::Ended("the connection was closed".to_owned()),
            },
        }
    }

    /// Returns why a remote request failed, if the JSON-RPC error cannot say it.
    fn request_failure(&self, request: &RequestId) -> Option<UpstreamError> {
        match (&self.transport, request) {
            (ServerTransport::Remote(failures), RequestId::Number(id)) => failures.take(*id),
            (ServerTransport::Remote(_) | ServerTransport::Process(..), _) => None,
        }
    }
}

impl CallTimeouts {
    /// Returns the limit that was reached. Progress causes no wakeup: it is checked when the time
    /// would be over.
    async fn wait_until_exceeded(
        self,
        begun: Instant,
        subscription: Option<&ProgressSubscription<'_>>,
        caller_guard: Option<&CallerGuard<'_>>,
    ) -> Duration {
        loop {
            let paused = caller_guard.map(CallerGuard::paused_for).unwrap_or_default();
            let end = begun + self.total + paused;
            let last = subscription.map_or(begun, ProgressSubscription::last);
            let until = (last + self.idle + paused).min(end);
            if until <= Instant::now() {
                return if until == end { self.total } else { self.idle };
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

fn reply_error(error: ErrorData) -> UpstreamError {
    if error.code == ErrorCode::METHOD_NOT_FOUND {
        return UpstreamError::NoSuchMethod;
    }
    let message = error.message.into_owned();
    UpstreamError::Rejected(RpcError { code: error.code.0, message, data: error.data })
}

/// A sent request; dropping it without an answer cancels the request.
struct PendingRequest<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for PendingRequest<'_> {
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
            // Sending fails only if the server has ended, and the request with it.
            let _ =
                peer.send_notification(ClientNotification::CancelledNotification(cancelled)).await;
        });
    }
}
