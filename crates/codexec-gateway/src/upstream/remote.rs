//! Servers on the network: Streamable HTTP, before and since 2026-07-28, and the older HTTP+SSE
//! transport.
//!
//! rmcp has a client for Streamable HTTP. Ours exists because messages must reach
//! [`UpstreamConnection`](super::UpstreamConnection) raw, and be read as leniently as on stdio. rmcp's client
//! learns its headers from typed lists, drops what it cannot type, and has sessions, retries and
//! queues of its own that our limits do not reach.

mod exchange;
mod headers;
mod http;
mod http_error;
mod link;
mod mirrored_arguments;
mod notifications;
mod open;
mod outgoing;
mod request_failures;
mod sse;
mod sse_parser;
mod state;

pub(super) use open::open;
pub(super) use request_failures::RequestFailures;

#[cfg(test)]
mod tests;
