//! Servers on the network: Streamable HTTP in both eras, and HTTP with a separate stream of
//! events.
//!
//! rmcp has a client for Streamable HTTP. Ours exists because what a server sends must reach
//! [`Connection`](super::Connection) as raw and be read as forgivingly as on stdio; rmcp's learns
//! its headers from typed lists, drops what it cannot type, and keeps sessions, retries and
//! queues of its own that our bounds do not reach.

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
