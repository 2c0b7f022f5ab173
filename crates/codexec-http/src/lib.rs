//! Serves codexec over HTTP: checks who asks and how, and gives the request to codexec-server.
//!
//! Invariant: nothing but `/live`, `/ready` and one word of `/health` is answered without a valid
//! token, and every wait and every buffer here has a bound.

mod callers;
mod checks;
mod code_api;
mod edge;
mod error;
mod io;
mod listen;
mod metrics;
mod peers;
mod rate_limit;
mod settings;
mod tokens;

pub use edge::{Edge, ToolsetSource};
pub use listen::{ListenError, Listener};
pub use settings::{HttpSettings, Network, TlsFiles};
pub use tokens::{FIRST_TOKEN, TokenError, TokenFile, TokenRecord};
