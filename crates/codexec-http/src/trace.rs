//! The span of an HTTP request.

use std::sync::Arc;

use codexec_server::{Client, Connection};
use codexec_telemetry::{Span, SpanKind, TraceContext, Tracer};
use http::request::Parts;
use http::{HeaderValue, StatusCode};

/// The header of W3C's standard, which names the span that a request belongs to.
const TRACE_PARENT: &str = "traceparent";

/// Starts the span of a request, below the one that its header names, and writes itself into that
/// header for whatever the request does.
pub(crate) fn start_span(tracer: &Tracer, head: &mut Parts) -> Span {
    let span = tracer.start(SpanKind::Server, "http", parent(head));
    let context = span.context().map(|context| context.to_string());
    match context.and_then(|context| HeaderValue::from_str(&context).ok()) {
        Some(value) => drop(head.headers.insert(TRACE_PARENT, value)),
        None => drop(head.headers.remove(TRACE_PARENT)),
    }
    span
}

pub(crate) fn finish_span(span: &mut Span, endpoint: &str, status: StatusCode) {
    span.set("http.route", endpoint);
    span.set("http.response.status_code", status.as_str());
    if status.is_server_error() {
        span.fail(status.as_str());
    }
}

/// Makes the client of a request that is no MCP message.
pub(crate) fn client(connection: &Arc<Connection>, head: &Parts) -> Client {
    let mut client = Client::new(Arc::clone(connection));
    client.trace = parent(head);
    client
}

/// Two values are none.
fn parent(head: &Parts) -> Option<TraceContext> {
    let mut values = head.headers.get_all(TRACE_PARENT).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => TraceContext::parse(value.to_str().ok()?),
        _ => None,
    }
}
