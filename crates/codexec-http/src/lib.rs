//! Serves codexec over HTTP: checks who asks and how, and gives the request to codexec-server.
//!
//! Invariant: nothing but `/live`, `/ready`, one word of `/health` and the files of the dashboard,
//! which contain no data, is answered without a valid token, and every wait and every buffer here
//! has a bound.

mod api;
mod bridge;
mod callers;
mod checks;
mod code_api;
mod dashboard;
mod edge;
mod error;
mod io;
mod listen;
mod metrics;
mod peers;
mod rate_limit;
mod settings;
mod tokens;
mod trace;

pub use edge::{HttpEdge, ToolsetSource};
pub use listen::{ListenError, Listener};
pub use settings::{HttpSettings, Network, TlsFiles};
pub use tokens::{FIRST_TOKEN, TokenError, TokenFile, TokenRecord};
