//! One HTTP request and its response: a JSON answer, or an event stream that contains it.

use std::time::Duration;

use codexec_types::{clean_line, cut_text, parse_lenient_json};
use reqwest::{Response, StatusCode, header::CONTENT_TYPE};
use rmcp::model::{ErrorCode, ErrorData, NumberOrString};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    http_error,
    link::RemoteLink,
    outgoing::OutgoingMessage,
    sse_parser::{SseItem, SseParser},
};
use crate::{
    upstream::{
        UpstreamError,
        incoming::{Message, error_data},
    },
    web::{self, BodyError},
};

/// How often in a row a stream is resumed without receiving anything.
const RESUMES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A stream that lasted this long resets the count.
const LASTING: Duration = Duration::from_secs(30);
/// The limit on meaningless events in a row.
const JUNK_EVENTS: u32 = 10_000;

/// Sends a message and delivers everything that its response contains.
pub(super) async fn exchange(
    link: &RemoteLink,
    outgoing: &OutgoingMessage,
) -> Result<(), UpstreamError> {
    let response = link.post(outgoing).await?;
    if outgoing.method == "initialize" {
        link.learn_session(&response);
    }
    let status = response.status();
    let has_session = link.has_session() && !outgoing.is_handshake();
    if let Some(error) = http_error::from_status(link, &response, has_session) {
        if let (UpstreamError::Ended(_), true) = (&error, has_session) {
            link.end_session(error.clone());
        }
        return Err(error);
    }
    let Some(id) = outgoing.id else { return Ok(()) };
    if is_stream(&response) && status.is_success() {
        return read_event_stream(link, Some(outgoing), response).await;
    }
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.map_or_else(|| "nothing".to_owned(), |kind| cut_text(&clean_line(kind), 60));
    let body = web::read_body(response, link.max_bytes).await.map_err(|error| match error {
        BodyError::TooLong(_) => too_long_error(link),
        BodyError::Broken => UpstreamError::Unreachable("the connection broke".to_owned()),
    })?;
    if !status.is_success() {
        return handle_error_status(link, outgoing, id, status, &body).await;
    }
    link.receive(&body, Some(outgoing)).await;
    if link.is_waiting_for(id) {
        let why = format!("it answered with {kind} instead of an MCP result");
        return Err(UpstreamError::Refused(why));
    }
    Ok(())
}

/// Handles an error status. An MCP error in the body is the answer, even if its id is missing or
/// wrong. Servers without discovery reject it in many ways.
async fn handle_error_status(
    link: &RemoteLink,
    outgoing: &OutgoingMessage,
    id: i64,
    status: StatusCode,
    body: &[u8],
) -> Result<(), UpstreamError> {
    let error = parse_lenient_json(body).ok().and_then(|body| body.get("error").map(read_error));
    let error = match error {
        Some(Some(error)) => error,
        Some(None) | None if outgoing.method == "server/discover" => {
            ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("HTTP {status}"), None)
        }
        Some(None) | None => return Err(http_error::from_body(status, body)),
    };
    if link.with_in_flight(|in_flight| in_flight.ids.remove(&id)) {
        let message = Message::error(error, Some(NumberOrString::Number(id)));
        link.deliver(vec![message], None).await;
    }
    Ok(())
}

fn read_error(error: &Value) -> Option<ErrorData> {
    error.get("code").and_then(Value::as_i64).map(|_| error_data(error))
}

/// Reads events until the answer has arrived; without a request, until the stream ends.
pub(super) async fn read_event_stream(
    link: &RemoteLink,
    outgoing: Option<&OutgoingMessage>,
    mut response: Response,
) -> Result<(), UpstreamError> {
    let mut parser = SseParser::new(link.max_bytes);
    let mut tries = 0;
    let mut junk = 0;
    loop {
        let begun = Instant::now();
        while let Ok(Some(chunk)) = response.chunk().await {
            parser.push(&chunk);
            while let Some(item) = parser.next() {
                tries = 0;
                let is_read = match item {
                    SseItem::Event(event) if matches!(event.kind.as_str(), "" | "message") => {
                        link.receive(&event.data, outgoing).await
                    }
                    SseItem::Event(_) => false,
                    SseItem::TooLong(_) if outgoing.is_some() => return Err(too_long_error(link)),
                    SseItem::TooLong(_) => false,
                };
                junk = if is_read { 0 } else { junk + 1 };
                if junk > JUNK_EVENTS {
                    return Err(UpstreamError::Refused("its events are not MCP".to_owned()));
                }
                if outgoing.and_then(|it| it.id).is_some_and(|id| !link.is_waiting_for(id)) {
                    return Ok(());
                }
            }
        }
        let can_resume = outgoing.is_none_or(|it| !it.is_modern && parser.last_id.is_some());
        if !can_resume || tries >= RESUMES {
            let why = "its response ended before it was complete".to_owned();
            return Err(UpstreamError::Unreachable(why));
        }
        tries = if begun.elapsed() > LASTING { 1 } else { tries + 1 };
        let pause = parser.retry.unwrap_or(FIRST_PAUSE * tries).min(LONGEST_PAUSE);
        tokio::time::sleep(pause).await;
        response = link.get(parser.last_id.as_deref()).await?;
        if !response.status().is_success() || !is_stream(&response) {
            return Err(http_error::from_body(response.status(), b""));
        }
        parser.restart();
    }
}

pub(super) fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

fn too_long_error(link: &RemoteLink) -> UpstreamError {
    let megabytes = link.max_bytes >> 20;
    UpstreamError::Refused(format!(
        "the server's answer is over the limit of {megabytes} MiB; ask for less"
    ))
}
