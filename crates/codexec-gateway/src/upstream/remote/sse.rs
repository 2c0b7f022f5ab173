//! The HTTP+SSE transport from before 2025-03-26: one event stream for everything the server sends,
//! whose first event is the address for everything we send.

use std::{convert::Infallible, sync::Arc};

use reqwest::Response;
use rmcp::{RoleClient, service::TxJsonRpcMessage, transport::Transport};
use tokio::{sync::mpsc, time::timeout};
use url::Url;

use super::{
    exchange::is_stream,
    http_error,
    link::{CONTROL_TIMEOUT, INBOX_MESSAGES, LinkParts, RemoteLink},
    outgoing::{OutgoingMessage, cancelled_id, request_id},
    request_failures::RequestFailures,
    sse_parser::{SseItem, SseParser},
};
use crate::{
    upstream::{
        UpstreamError,
        incoming::{Message, fail_oversized_line},
    },
    web::{self, BodyError},
};

/// The limit on events before the address, and on meaningless events in a row after it.
const JUNK_EVENTS: u32 = 10_000;
const REFUSAL_BYTES: usize = 16 << 10;

pub(super) struct SseTransport {
    link: Arc<RemoteLink>,
    inbox: mpsc::Receiver<Message>,
}

impl SseTransport {
    /// Opens the stream and waits for the address. The caller must set a time limit.
    pub(super) async fn open(parts: LinkParts) -> Result<SseTransport, UpstreamError> {
        let (sender, inbox) = mpsc::channel(INBOX_MESSAGES);
        let link = Arc::new(RemoteLink::new(parts, sender));
        let response = link.get(None).await?;
        if let Some(error) = http_error::from_status(&link, &response, false) {
            return Err(error);
        }
        if !response.status().is_success() || !is_stream(&response) {
            return Err(http_error::from_body(response.status(), b""));
        }
        let mut stream = SseStream { response, parser: SseParser::new(link.max_bytes) };
        let endpoint = read_endpoint(&mut stream, &link.url).await?;
        link.set_endpoint(endpoint);
        let reading = link.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = read_stream(&reading, stream) => {}
                () = reading.closed.cancelled() => {}
            }
        });
        Ok(SseTransport { link, inbox })
    }

    pub(super) fn failures(&self) -> Arc<RequestFailures> {
        self.link.failures.clone()
    }
}

struct SseStream {
    response: Response,
    parser: SseParser,
}

impl SseStream {
    /// Returns `None` at the end of the stream.
    async fn next(&mut self) -> Option<SseItem> {
        loop {
            if let Some(item) = self.parser.next() {
                return Some(item);
            }
            let chunk = self.response.chunk().await.ok()??;
            self.parser.push(&chunk);
        }
    }
}

/// THREAT[REM-2]: messages go only to the origin that the user configured, whatever the server
/// says.
async fn read_endpoint(stream: &mut SseStream, url: &Url) -> Result<Url, UpstreamError> {
    let refused = |why: &str| UpstreamError::Refused(why.to_owned());
    for _ in 0..JUNK_EVENTS {
        match stream.next().await {
            Some(SseItem::Event(event)) if event.kind == "endpoint" => {
                let address = std::str::from_utf8(&event.data).ok();
                let endpoint = address.and_then(|address| url.join(address.trim()).ok());
                let endpoint = endpoint.filter(|endpoint| web::is_same_origin(url, endpoint));
                return endpoint.ok_or_else(|| refused("its SSE endpoint is on another origin"));
            }
            Some(SseItem::Event(_) | SseItem::TooLong(_)) => {}
            None => break,
        }
    }
    Err(refused("it sent no SSE endpoint"))
}

async fn read_stream(link: &RemoteLink, mut stream: SseStream) {
    let mut junk = 0;
    while let Some(item) = stream.next().await {
        let is_read = match item {
            SseItem::Event(event) => link.receive(&event.data, None).await,
            SseItem::TooLong(head) => {
                let max_bytes = link.max_bytes;
                let lost = link.with_in_flight(|it| fail_oversized_line(&head, max_bytes, it));
                link.deliver(lost, None).await;
                false
            }
        };
        junk = if is_read { 0 } else { junk + 1 };
        if junk > JUNK_EVENTS {
            break;
        }
    }
    link.end(UpstreamError::Ended("it closed its stream of events".to_owned()));
}

impl Transport<RoleClient> for SseTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let link = self.link.clone();
        async move {
            link.note_answer(&item);
            if let Some(id) = cancelled_id(&item) {
                link.cancel(id);
            }
            let id = request_id(&item);
            let message = serde_json::to_value(&item).unwrap_or_default();
            let outgoing = OutgoingMessage::new(&message, id);
            match id {
                Some(id) => {
                    let unwanted = link.begin_request(id, &outgoing);
                    tokio::spawn(async move {
                        tokio::select! {
                            () = post_message(&link, &outgoing) => link.finish_request(id),
                            () = unwanted.cancelled() => {}
                        }
                    });
                }
                None => post_message(&link, &outgoing).await,
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

    fn close(&mut self) -> impl Future<Output = Result<(), Infallible>> + Send {
        self.link.closed.cancel();
        std::future::ready(Ok(()))
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.link.closed.cancel();
    }
}

/// Posts a message. The answer arrives on the stream; the response carries only refusals.
async fn post_message(link: &RemoteLink, outgoing: &OutgoingMessage) {
    let sent = async {
        let response = link.post(outgoing).await?;
        if let Some(error) = http_error::from_status(link, &response, false) {
            return Err(error);
        }
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let body = match web::read_body(response, REFUSAL_BYTES).await {
            Ok(body) | Err(BodyError::TooLong(body)) => body,
            Err(BodyError::Broken) => Vec::new(),
        };
        Err(http_error::from_body(status, &body))
    };
    let sent = timeout(CONTROL_TIMEOUT, sent).await;
    let sent = sent.unwrap_or(Err(UpstreamError::Timeout(CONTROL_TIMEOUT)));
    if let Err(error) = sent {
        link.fail(outgoing, error).await;
    }
}
