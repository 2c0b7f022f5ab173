//! One running server: requests to it, and its end.

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

/// Of what a server says it is, this much counts.
const VERSION_BYTES: usize = 500;

/// What a remote server gets to hear that we leave.
const GOODBYE: Duration = Duration::from_secs(1);

/// Dropping it kills a server that is a process of ours.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    service: std::sync::Mutex<Option<RunningServiceCancellationToken>>,
    wire: Wire,
    /// Each request must say more about us than a lane does.
    is_modern: bool,
    /// The server will say nothing more.
    gone: CancellationToken,
    news: News,
}

/// What a server tells without being asked.
#[derive(Clone, Default)]
pub(super) struct News {
    /// Its tools have changed.
    pub(super) changes: Arc<Changes>,
    /// How far calls are.
    pub(super) progress: Arc<Listeners>,
    /// Whom it may ask something.
    pub(super) callers: Arc<Callers>,
}

/// How long an answer may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Without a word about the request.
    pub(super) idle: Duration,
    /// Whatever is said.
    pub(super) total: Duration,
}

/// What stands behind a connection.
pub(super) enum Wire {
    Process(Leash, Arc<Lane>),
    Remote(Arc<Troubles>),
}

impl Connection {
    /// `gone` is cancelled when nothing more will come.
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

    /// `None`: it is no process of ours.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.life().map(Life::pid)
    }

    fn life(&self) -> Option<&Life> {
        match &self.wire {
            Wire::Process(leash, _) => Some(&leash.0),
            Wire::Remote(_) => None,
        }
    }

    /// What the server calls itself.
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

    /// Calls a tool and gives its raw result. Dropping the future tells the server.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
        patience: Patience,
        on_progress: Option<OnProgress>,
        waiting: Option<&Waiting<'_>>,
    ) -> Result<Value, UpstreamError> {
        // A second round, with what was answered to the server's questions.
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
        // The line is on its way; what it was made from need not wait for the answer.
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

    /// Sends a request and gives its raw result. Dropping the future tells the server.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
    ) -> Result<Value, UpstreamError> {
        self.ask(request, Patience { idle: limit, total: limit }, None, None).await
    }

    /// The same, for what may take longer as long as the server tells how far it is, or somebody
    /// is asked.
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

    /// Lets the server ask this caller something as long as it is held.
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

    /// Closes the server's input, and ends what does not end by itself.
    pub(super) async fn close(&self) {
        let token = self.service.lock().ok().and_then(|mut service| service.take());
        if let Some(token) = token {
            token.cancel();
        }
        match &self.wire {
            Wire::Process(leash, _) => leash.0.end().await,
            // A session is closed before its connection is.
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

    /// Why a remote server did not answer a request, where its own error does not say it.
    fn trouble(&self, request: &RequestId) -> Option<UpstreamError> {
        match (&self.wire, request) {
            (Wire::Remote(troubles), RequestId::Number(id)) => troubles.take(*id),
            (Wire::Remote(_) | Wire::Process(..), _) => None,
        }
    }
}

impl Patience {
    /// Comes back with the limit that was reached. News costs no wakeup: it is looked for when the
    /// time would be over.
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
