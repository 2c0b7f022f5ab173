//! Responses as server-sent events.

use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body_util::{BodyExt as _, StreamBody};
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::common::server_side_http::ServerSseMessage;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::HttpBody;

/// A stream without events gets a comment this often, so that nothing on the way closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Streams messages as events.
pub(super) fn respond(
    messages: impl Stream<Item = ServerSseMessage> + Send + 'static,
    guard: impl Send + 'static,
    stop: CancellationToken,
) -> Response<HttpBody> {
    stream_events(messages.map(|message| write_event(&message)), guard, stop)
}

/// Streams events that are written already, with comments to keep the connection alive. `guard` is
/// dropped when the stream ends or the client closes it.
pub fn stream_events(
    events: impl Stream<Item = String> + Send + 'static,
    guard: impl Send + 'static,
    stop: CancellationToken,
) -> Response<HttpBody> {
    let state = (Box::pin(events), guard, stop);
    let frames = futures::stream::unfold(state, |(mut events, guard, stop)| async move {
        let next = tokio::select! {
            // What is already there is still sent.
            biased;
            next = tokio::time::timeout(KEEP_ALIVE, events.next()) => next,
            () = stop.cancelled() => return None,
        };
        let text = match next {
            Ok(event) => event?,
            Err(_) => ":\n\n".to_owned(),
        };
        let frame = http_body::Frame::data(Bytes::from(text));
        Some((Ok(frame), (events, guard, stop)))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn write_event(event: &ServerSseMessage) -> String {
    let mut text = String::new();
    if let Some(id) = &event.event_id {
        text.push_str(&format!("id: {id}\n"));
    }
    if let Some(retry) = event.retry {
        text.push_str(&format!("retry: {}\n", retry.as_millis()));
    }
    // JSON has no line breaks of its own.
    let data = event.message.as_ref().map(|message| serde_json::to_string(message.as_ref()));
    let data = data.and_then(Result::ok).unwrap_or_default();
    text.push_str(&format!("data: {data}\n\n"));
    text
}

/// Returns the messages up to the one that answers the request.
pub(super) fn until_last(
    messages: mpsc::Receiver<ServerJsonRpcMessage>,
) -> impl Stream<Item = ServerJsonRpcMessage> {
    futures::stream::unfold(Some(messages), |messages| async move {
        let mut messages = messages?;
        let message = messages.recv().await?;
        let rest = (!is_last(&message)).then_some(messages);
        Some((message, rest))
    })
}

/// True if the message answers the request.
pub(super) fn is_last(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
}
