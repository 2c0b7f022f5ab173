//! The worker's side for JavaScript and TypeScript: one engine, one guest, one socket.
//!
//! Invariant: after [`JsGuest::warm`] no code opens a file, starts a thread or reads the
//! environment. The socket is the only way out, and no guest value is trusted on its way to it.

mod callee;
mod fault;
mod guest;
mod intl;
mod native;
mod positions;
mod prelude;
mod program;
mod random;
mod url;
mod wire;
mod zone;

pub use guest::{JsGuest, WarmError};
