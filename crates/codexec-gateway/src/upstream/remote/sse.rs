//! The HTTP+SSE transport from before 2025-03-26: one event stream for everything the server sends,
//! whose first event is the address for everything we send.

use std::{convert::Infallible, sync::Arc};

use reqwest::Response;
use rmcp::{RoleClient, service::TxJsonRpcMessage, transport::Transport};
use tokio::{sync::mpsc, time::timeout};
use url::Url;

use super::{
    event::{Events, Parsed},
    exchange::is_stream,
    link::{CONTROL, Ends, Link, QUEUED},
    outgoing::{Outgoing, cancelled_id, request_id},
    refusal,
    troubles::Troubles,
};
use crate::{
    upstream::{
        UpstreamError,
        incoming::{Message, too_long},
    },
    web::{self, BodyError},
};

/// The limit on events before the address, and on meaningless events in a row after it.
const JUNK_EVENTS: u32 = 10_000;
const REFUSAL_BYTES: usize = 16 << 10;

pub(super) struct Sse {
    link: Arc<Link>,
    inbox: mpsc::Receiver<Message>,
}

impl Sse {
    /// Opens the stream and waits for the address. The caller must set a time limit.
    pub(super) async fn open(ends: Ends) -> Result<Sse, UpstreamError> {
        let (sender, inbox) = mpsc::channel(QUEUED);
        let link = Arc::new(Link::new(ends, sender));
        let response = link.get(None).await?;
        if let Some(error) = refusal::of_status(&link, &response, false) {
            return Err(error);
        }
        if !response.status().is_success() || !is_stream(&response) {
            return Err(refusal::of_body(response.status(), b""));
        }
        let mut stream = Stream { response, events: Events::new(link.max_bytes) };
        let endpoint = endpoint(&mut stream, &link.url).await?;
        link.post_to(endpoint);
        let reading = link.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = listen(&reading, stream) => {}
                () = reading.gone.cancelled() => {}
            }
        });
        Ok(Sse { link, inbox })
    }

    pub(super) fn troubles(&self) -> Arc<Troubles> {
        self.link.troubles.clone()
    }
}

struct Stream {
    response: Response,
    events: Events,
}

impl Stream {
    /// Returns `None` at the end of the stream.
    async fn next(&mut self) -> Option<Parsed> {
        loop {
            if let Some(parsed) = self.events.next() {
                return Some(parsed);
            }
            let chunk = self.response.chunk().await.ok()??;
            self.events.push(&chunk);
        }
    }
}

/// THREAT[REM-2]: messages go only to the origin that the user configured, whatever the server
/// says.
async fn endpoint(stream: &mut Stream, url: &Url) -> Result<Url, UpstreamError> {
    let refused = |why: &str| UpstreamError::Refused(why.to_owned());
    for _ in 0..JUNK_EVENTS {
        match stream.next().await {
            Some(Parsed::Event(event)) if event.kind == "endpoint" => {
                let address = std::str::from_utf8(&event.data).ok();
                let endpoint = address.and_then(|address| url.join(address.trim()).ok());
                let endpoint = endpoint.filter(|endpoint| web::same_origin(url, endpoint));
                return endpoint.ok_or_else(|| refused("it wants to be told things elsewhere"));
            }
            Some(Parsed::Event(_) | Parsed::TooLong(_)) => {}
            None => break,
        }
    }
    Err(refused("it did not say where it wants to be told things"))
}

async fn listen(link: &Link, mut stream: Stream) {
    let mut junk = 0;
    while let Some(parsed) = stream.next().await {
        let is_read = match parsed {
            Parsed::Event(event) => link.take(&event.data, None).await,
            Parsed::TooLong(head) => {
                let max_bytes = link.max_bytes;
                let lost = link.with_in_flight(|it| too_long(&head, max_bytes, it));
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

impl Transport<RoleClient> for Sse {
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
            let outgoing = Outgoing::new(&message, id);
            match id {
                Some(id) => {
                    let unwanted = link.begin(id, &outgoing);
                    tokio::spawn(async move {
                        tokio::select! {
                            () = tell(&link, &outgoing) => link.ended(id),
                            () = unwanted.cancelled() => {}
                        }
                    });
                }
                None => tell(&link, &outgoing).await,
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

    fn close(&mut self) -> impl Future<Output = Result<(), Infallible>> + Send {
        self.link.gone.cancel();
        std::future::ready(Ok(()))
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.link.gone.cancel();
    }
}

/// Posts a message. The answer arrives on the stream; the response carries only refusals.
async fn tell(link: &Link, outgoing: &Outgoing) {
    let told = async {
        let response = link.post(outgoing).await?;
        if let Some(error) = refusal::of_status(link, &response, false) {
            return Err(error);
        }
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let body = match web::body(response, REFUSAL_BYTES).await {
            Ok(body) | Err(BodyError::TooLong(body)) => body,
            Err(BodyError::Broken) => Vec::new(),
        };
        Err(refusal::of_body(status, &body))
    };
    let told = timeout(CONTROL, told).await;
    let told = told.unwrap_or(Err(UpstreamError::Timeout(CONTROL)));
    if let Err(error) = told {
        link.fail(outgoing, error).await;
    }
}
