//! One running server: requests to it, and its end.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::{
        CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest,
        ErrorCode, RequestId, ServerResult,
    },
    service::{
        Peer, PeerRequestOptions, RunningService, RunningServiceCancellationToken, Service,
        ServiceError,
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
    process::{Leash, Life},
    remote::Troubles,
};

/// Dropping it kills a server that is a process of ours.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    service: std::sync::Mutex<Option<RunningServiceCancellationToken>>,
    wire: Wire,
    /// The server will say nothing more.
    gone: CancellationToken,
    /// It said that its tools have changed.
    pub(super) changed: Arc<Notify>,
}

/// What stands behind a connection.
pub(super) enum Wire {
    Process(Leash),
    Remote(Arc<Troubles>),
}

impl Connection {
    /// `gone` is cancelled when nothing more will come.
    pub(super) fn new<S: Service<RoleClient>>(
        service: RunningService<RoleClient, S>,
        wire: Wire,
        gone: CancellationToken,
        changed: Arc<Notify>,
    ) -> Connection {
        let peer = service.peer().clone();
        let token = service.cancellation_token();
        // rmcp's loop runs in its own task; it ends with the transport or by our token.
        tokio::spawn(service.waiting());
        let service = std::sync::Mutex::new(Some(token));
        Connection { peer, service, wire, gone, changed }
    }

    /// `None`: it is no process of ours.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.life().map(Life::pid)
    }

    fn life(&self) -> Option<&Life> {
        match &self.wire {
            Wire::Process(leash) => Some(&leash.0),
            Wire::Remote(_) => None,
        }
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
        let id = handle.id.clone();
        let mut pending = Pending { peer: &self.peer, id: Some(id.clone()) };
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer.ok(),
            () = self.gone.cancelled() => None,
            () = tokio::time::sleep_until(deadline) => return Err(UpstreamError::Timeout(limit)),
        };
        pending.id = None;
        match answer {
            Some(Ok(ServerResult::CustomResult(result))) => Ok(result.0),
            Some(Err(ServiceError::McpError(error))) => {
                let trouble = self.trouble(&id);
                Err(trouble.unwrap_or_else(|| refusal(error.code, &error.message)))
            }
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
        if let Some(life) = self.life() {
            life.end().await;
        }
    }

    pub(super) fn kill(&self) {
        if let Some(life) = self.life() {
            life.kill();
        }
    }

    pub(super) async fn ended(&self) -> UpstreamError {
        match &self.wire {
            Wire::Process(leash) => UpstreamError::Ended(leash.0.epitaph().await),
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
            (Wire::Remote(_) | Wire::Process(_), _) => None,
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
