//! THREAT[REM-1]: Streamable HTTP. Every message is a request in its own task, which ends with its
//! caller. Responses are bounded, and a failure affects only its own request.

use std::{convert::Infallible, sync::Arc};

use rmcp::{RoleClient, service::TxJsonRpcMessage, transport::Transport};
use serde_json::Value;
use tokio::{sync::mpsc, time::timeout};

use super::{
    exchange::exchange,
    headers::{add_trace_header, build_headers, protocol_version},
    link::{CONTROL_TIMEOUT, INBOX_MESSAGES, LinkParts, RemoteLink},
    notifications,
    outgoing::{OutgoingMessage, cancelled_id, request_id},
    request_failures::RequestFailures,
};
use crate::upstream::incoming::Message;

pub(super) struct HttpTransport {
    link: Arc<RemoteLink>,
    inbox: mpsc::Receiver<Message>,
}

impl HttpTransport {
    pub(super) fn new(parts: LinkParts) -> HttpTransport {
        let (sender, inbox) = mpsc::channel(INBOX_MESSAGES);
        HttpTransport { link: Arc::new(RemoteLink::new(parts, sender)), inbox }
    }

    pub(super) fn failures(&self) -> Arc<RequestFailures> {
        self.link.failures.clone()
    }
}

impl Transport<RoleClient> for HttpTransport {
    type Error = Infallible;

    /// Returns when a request is on its way, or when any other message has arrived.
    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let link = self.link.clone();
        async move {
            link.note_answer(&item);
            match request_id(&item) {
                Some(id) => send_request(link, message_and_version(&item), id),
                None => {
                    send_notification(link, message_and_version(&item), cancelled_id(&item)).await
                }
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        tokio::select! {
            biased;
            message = self.inbox.recv() => message,
            () = self.link.closed.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.link.delete_session().await;
        self.link.closed.cancel();
        Ok(())
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.link.closed.cancel();
    }
}

fn message_and_version(item: &TxJsonRpcMessage<RoleClient>) -> (Value, Option<String>) {
    let message = serde_json::to_value(item).unwrap_or_default();
    let version = protocol_version(&message).map(str::to_owned);
    (message, version)
}

fn build_outgoing(
    link: &RemoteLink,
    (message, version): (Value, Option<String>),
    id: Option<i64>,
) -> OutgoingMessage {
    let mut outgoing = OutgoingMessage::new(&message, id);
    if let Some(version) = version {
        let tool = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
        let is_call = outgoing.method == "tools/call";
        let mirrored = if is_call { link.mirrored_arguments(tool) } else { Vec::new() };
        outgoing.headers = build_headers(&message, &version, &mirrored);
        outgoing.is_modern = true;
    }
    add_trace_header(&mut outgoing.headers, &message);
    outgoing
}

fn send_request(link: Arc<RemoteLink>, message: (Value, Option<String>), id: i64) {
    let outgoing = build_outgoing(&link, message, Some(id));
    let unwanted = link.begin_request(id, &outgoing);
    tokio::spawn(async move {
        let exchanged = tokio::select! {
            exchanged = exchange(&link, &outgoing) => exchanged,
            () = unwanted.cancelled() => return,
        };
        link.finish_request(id);
        if let Err(error) = exchanged {
            link.fail(&outgoing, error).await;
        } else if let Some(filter) = link.take_changes_offer() {
            tokio::spawn(notifications::subscribe_to_changes(link, outgoing, filter));
        }
    });
}

/// Sends a message without an answer, within a time limit.
async fn send_notification(
    link: Arc<RemoteLink>,
    message: (Value, Option<String>),
    cancelled: Option<i64>,
) {
    if let Some(id) = cancelled {
        link.cancel(id);
        // From 2026-07-28 on, closing the stream cancels the request.
        if link.is_modern() {
            return;
        }
    }
    let outgoing = build_outgoing(&link, message, None);
    let sent = tokio::select! {
        sent = timeout(CONTROL_TIMEOUT, exchange(&link, &outgoing)) => sent,
        () = link.closed.cancelled() => return,
    };
    if outgoing.method == "notifications/initialized" && matches!(sent, Ok(Ok(()))) {
        tokio::spawn(notifications::read_notifications(link));
    }
}
