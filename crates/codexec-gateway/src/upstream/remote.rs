//! Servers on the network: Streamable HTTP, before and since 2026-07-28, and the older HTTP+SSE
//! transport.
//!
//! rmcp has a client for Streamable HTTP. Ours exists because messages must reach
//! [`Connection`](super::Connection) raw, and be read as leniently as on stdio. rmcp's client
//! learns its headers from typed lists, drops what it cannot type, and has sessions, retries and
//! queues of its own that our limits do not reach.

mod books;
mod event;
mod exchange;
mod headers;
mod http;
mod link;
mod listen;
mod open;
mod outgoing;
mod params;
mod refusal;
mod sse;
mod troubles;

pub(super) use open::open;
pub(super) use troubles::Troubles;

#[cfg(test)]
mod tests;
