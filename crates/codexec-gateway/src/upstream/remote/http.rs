//! THREAT[REM-1]: Streamable HTTP. Every message is a request in its own task, which ends with its
//! caller. Responses are bounded, and a failure affects only its own request.

use std::{convert::Infallible, sync::Arc};

use rmcp::{RoleClient, service::TxJsonRpcMessage, transport::Transport};
use serde_json::Value;
use tokio::{sync::mpsc, time::timeout};

use super::{
    exchange::exchange,
    headers::{headers, version_of},
    link::{CONTROL, Ends, Link, QUEUED},
    listen,
    outgoing::{Outgoing, cancelled_id, request_id},
    troubles::Troubles,
};
use crate::upstream::incoming::Message;

pub(super) struct Http {
    link: Arc<Link>,
    inbox: mpsc::Receiver<Message>,
}

impl Http {
    pub(super) fn new(ends: Ends) -> Http {
        let (sender, inbox) = mpsc::channel(QUEUED);
        Http { link: Arc::new(Link::new(ends, sender)), inbox }
    }

    pub(super) fn troubles(&self) -> Arc<Troubles> {
        self.link.troubles.clone()
    }
}

impl Transport<RoleClient> for Http {
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
                Some(id) => send_request(link, outgoing_of(&item), id),
                None => tell(link, outgoing_of(&item), cancelled_id(&item)).await,
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<Message> {
        tokio::select! {
            biased;
            message = self.inbox.recv() => message,
            () = self.link.gone.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.link.delete_session().await;
        self.link.gone.cancel();
        Ok(())
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.link.gone.cancel();
    }
}

fn outgoing_of(item: &TxJsonRpcMessage<RoleClient>) -> (Value, Option<String>) {
    let message = serde_json::to_value(item).unwrap_or_default();
    let version = version_of(&message).map(str::to_owned);
    (message, version)
}

fn made(link: &Link, (message, version): (Value, Option<String>), id: Option<i64>) -> Outgoing {
    let mut outgoing = Outgoing::new(&message, id);
    if let Some(version) = version {
        let tool = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
        let is_call = outgoing.method == "tools/call";
        let mirrored = if is_call { link.mirrored(tool) } else { Vec::new() };
        outgoing.headers = headers(&message, &version, &mirrored);
        outgoing.is_modern = true;
    }
    outgoing
}

fn send_request(link: Arc<Link>, message: (Value, Option<String>), id: i64) {
    let outgoing = made(&link, message, Some(id));
    let unwanted = link.begin(id, &outgoing);
    tokio::spawn(async move {
        let exchanged = tokio::select! {
            exchanged = exchange(&link, &outgoing) => exchanged,
            () = unwanted.cancelled() => return,
        };
        link.ended(id);
        if let Err(error) = exchanged {
            link.fail(&outgoing, error).await;
        } else if link.tells_changes() {
            tokio::spawn(listen::to_changes(link, outgoing));
        }
    });
}

/// Sends a message without an answer, within a time limit.
async fn tell(link: Arc<Link>, message: (Value, Option<String>), cancelled: Option<i64>) {
    if let Some(id) = cancelled {
        link.cancel(id);
        // From 2026-07-28 on, closing the stream cancels the request.
        if link.is_modern() {
            return;
        }
    }
    let outgoing = made(&link, message, None);
    let told = tokio::select! {
        told = timeout(CONTROL, exchange(&link, &outgoing)) => told,
        () = link.gone.cancelled() => return,
    };
    if outgoing.method == "notifications/initialized" && matches!(told, Ok(Ok(()))) {
        tokio::spawn(listen::to_stream(link));
    }
}
