//! A connection to one running server: requests to it, and its end.

use std::{sync::Arc, time::Duration};

use codexec_types::ServerName;
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
        ClientNotification, ClientRequest, ErrorCode, NumberOrString, ProgressToken,
        ProtocolVersion, RequestId, ServerResult,
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
    callers::{Callers, Waiting},
    changes::Changes,
    lane::Lane,
    outbox::SendError,
    process::{Leash, Life},
    progress::{Listeners, Listening, OnProgress},
    remote::Troubles,
};
use crate::{Caller, clean::cut};

/// The limit on a server's reported name and version.
const VERSION_BYTES: usize = 500;

/// How long a remote server gets to close its session.
const GOODBYE: Duration = Duration::from_secs(1);

/// A connection to a server. Dropping it kills a server that is our process.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    service: std::sync::Mutex<Option<RunningServiceCancellationToken>>,
    wire: Wire,
    /// True if the protocol version needs more metadata per request than [`CallPipe`] sends.
    is_modern: bool,
    /// Cancelled when the server will send nothing more.
    gone: CancellationToken,
    news: News,
}

/// Receivers for messages that a server sends by itself.
#[derive(Clone, Default)]
pub(super) struct News {
    /// Its list of tools has changed.
    pub(super) changes: Arc<Changes>,
    /// Progress of calls.
    pub(super) progress: Arc<Listeners>,
    /// Callers that can answer its questions.
    pub(super) callers: Arc<Callers>,
}

/// Time limits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Without any progress.
    pub(super) idle: Duration,
    /// In total, whatever progress arrives.
    pub(super) total: Duration,
}

/// The transport of a connection.
pub(super) enum Wire {
    Process(Leash, Arc<Lane>),
    Remote(Arc<Troubles>),
}

impl Connection {
    /// `closed` is cancelled when nothing more will arrive.
    pub(super) fn new<S: Service<RoleClient>>(
        service: RunningService<RoleClient, S>,
        wire: Wire,
        gone: CancellationToken,
        news: News,
    ) -> Connection {
        let peer = service.peer().clone();
        let token = service.cancellation_token();
        // rmcp's loop runs in its own task; it ends with the transport or by our token.
        tokio::spawn(service.waiting());
        let service = std::sync::Mutex::new(Some(token));
        let is_modern = peer
            .peer_info()
            .is_some_and(|info| info.protocol_version > ProtocolVersion::LATEST_WITH_INITIALIZE);
        Connection { peer, service, wire, is_modern, gone, news }
    }

    /// Returns `None` if the server is not our process.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.life().map(Life::pid)
    }

    fn life(&self) -> Option<&Life> {
        match &self.wire {
            Wire::Process(leash, _) => Some(&leash.0),
            Wire::Remote(_) => None,
        }
    }

    /// Returns the name and version that the server reports.
    pub(super) fn version(&self) -> Option<String> {
        let info = self.peer.peer_info()?;
        let info = info.server_info.as_ref()?;
        Some(cut(&format!("{} {}", info.name, info.version), VERSION_BYTES))
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    pub(super) fn changes(&self) -> &Changes {
        &self.news.changes
    }

    /// Calls a tool and returns its raw result. Dropping the future cancels the call.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        patience: Patience,
        on_progress: Option<OnProgress>,
        waiting: Option<&Waiting<'_>>,
    ) -> Result<Value, UpstreamError> {
        // A second round, which carries answers to the server's questions.
        let is_answer = params.request_state.is_some() || params.input_responses.is_some();
        let lane = match &self.wire {
            Wire::Process(_, lane) if !self.is_modern && !is_answer => lane,
            Wire::Process(..) | Wire::Remote(_) => {
                let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
                return self.ask(request, patience, on_progress, waiting).await;
            }
        };
        let mut call = lane.call();
        let begun = Instant::now();
        let listening = self.news.progress.listen(call.id, on_progress);
        match call.send(&params.name, params.arguments.as_ref()) {
            Ok(()) => {}
            Err(SendError::Closed) => return Err(self.ended().await),
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
            () = self.gone.cancelled() => None,
            limit = patience.over(begun, Some(&listening), waiting) => {
                return Err(UpstreamError::Timeout(limit));
            }
        };
        let Some(answer) = answer else { return Err(self.ended().await) };
        answer.map_err(|error| refusal(error.code, &error.message))
    }

    /// Sends a request and returns its raw result. Dropping the future cancels it.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<Value, UpstreamError> {
        self.ask(request, Patience { idle: limit, total: limit }, None, None).await
    }

    /// Sends a request whose timeout restarts at every progress notification and is paused during
    /// questions.
    pub(super) async fn ask(
        &self,
        request: ClientRequest,
        patience: Patience,
        on_progress: Option<OnProgress>,
        waiting: Option<&Waiting<'_>>,
    ) -> Result<Value, UpstreamError> {
        let begun = Instant::now();
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let mut handle = match timeout_at(begun + patience.idle, sent).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(_)) => return Err(self.ended().await),
            Err(_) => return Err(UpstreamError::Timeout(patience.idle)),
        };
        let id = handle.id.clone();
        let mut pending = Pending { peer: &self.peer, id: Some(id.clone()) };
        let listening = self.listen(&handle, on_progress);
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer.ok(),
            () = self.gone.cancelled() => None,
            limit = patience.over(begun, listening.as_ref(), waiting) => {
                return Err(UpstreamError::Timeout(limit));
            }
        };
        pending.id = None;
        if let Some(trouble) = self.trouble(&id) {
            return Err(trouble);
        }
        match answer {
            Some(Ok(ServerResult::CustomResult(result))) => Ok(result.0),
            Some(Err(ServiceError::McpError(error))) => Err(refusal(error.code, &error.message)),
            Some(Err(ServiceError::TransportSend(error))) => {
                Err(UpstreamError::Unreachable(error.error.to_string()))
            }
            Some(Ok(_) | Err(_)) | None => Err(self.ended().await),
        }
    }

    /// Lets the server ask this caller questions until the guard is dropped.
    pub(super) fn enter(&self, server: &ServerName, caller: &Caller) -> Option<Waiting<'_>> {
        caller.can_answer().then(|| self.news.callers.enter(server, caller))
    }

    fn listen(
        &self,
        handle: &RequestHandle<RoleClient>,
        on_progress: Option<OnProgress>,
    ) -> Option<Listening<'_>> {
        match handle.progress_token {
            ProgressToken(NumberOrString::Number(token)) => {
                Some(self.news.progress.listen(token, on_progress))
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
        match &self.wire {
            Wire::Process(leash, _) => leash.0.end().await,
            // The session is closed before the connection.
            Wire::Remote(_) => {
                let _ = timeout(GOODBYE, self.gone()).await;
            }
        }
    }

    pub(super) fn kill(&self) {
        match &self.wire {
            Wire::Process(leash, _) => leash.0.kill(),
            Wire::Remote(_) => self.gone.cancel(),
        }
    }

    pub(super) async fn ended(&self) -> UpstreamError {
        match &self.wire {
            Wire::Process(leash, _) => UpstreamError::Ended(leash.0.epitaph().await),
            Wire::Remote(troubles) => match troubles.why_ended() {
                Some(UpstreamError::Start(why)) => UpstreamError::Ended(why),
                Some(error) => error,
                None => UpstreamError::Ended("the connection was closed".to_owned()),
            },
        }
    }

    /// Returns why a remote request failed, if the JSON-RPC error cannot say it.
    fn trouble(&self, request: &RequestId) -> Option<UpstreamError> {
        match (&self.wire, request) {
            (Wire::Remote(troubles), RequestId::Number(id)) => troubles.take(*id),
            (Wire::Remote(_) | Wire::Process(..), _) => None,
        }
    }
}

impl Patience {
    /// Returns the limit that was reached. Progress causes no wakeup: it is checked when the time
    /// would be over.
    async fn over(
        self,
        begun: Instant,
        listening: Option<&Listening<'_>>,
        waiting: Option<&Waiting<'_>>,
    ) -> Duration {
        loop {
            let stood = waiting.map(Waiting::stood).unwrap_or_default();
            let end = begun + self.total + stood;
            let last = listening.map_or(begun, Listening::last);
            let until = (last + self.idle + stood).min(end);
            if until <= Instant::now() {
                return if until == end { self.total } else { self.idle };
            }
            tokio::time::sleep_until(until).await;
        }
    }
}

fn refusal(code: ErrorCode, message: &str) -> UpstreamError {
    if code == ErrorCode::METHOD_NOT_FOUND {
        UpstreamError::NoSuchMethod
    } else {
        UpstreamError::Refused(message.to_owned())
    }
}

/// A sent request; dropping it without an answer cancels the request.
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
            // Sending fails only if the server has ended, and the request with it.
            let _ =
                peer.send_notification(ClientNotification::CancelledNotification(cancelled)).await;
        });
    }
}
