//! Server-sent events with a name and JSON.

use codexec_server::mcp::{self, HttpBody};
use futures::Stream;
use futures::StreamExt as _;
use http::Response;
use http::header::ACCEPT;
use http::request::Parts;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// An event: its name, and its data.
pub(super) type Event = (&'static str, Value);

/// Returns true if the client asks for a stream.
pub(super) fn is_wanted(head: &Parts) -> bool {
    let accepts = head.headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|text| text.split(',')).any(|one| {
        let name = one.split(';').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("text/event-stream")
    })
}

/// Streams the events. `guard` is dropped when the stream ends or the client closes it.
pub(super) fn respond(
    events: impl Stream<Item = Event> + Send + 'static,
    guard: impl Send + 'static,
    stop: CancellationToken,
) -> Response<HttpBody> {
    // JSON has no line breaks of its own.
    let texts = events.map(|(name, data)| format!("event: {name}\ndata: {data}\n\n"));
    mcp::stream_events(texts, guard, stop)
}
