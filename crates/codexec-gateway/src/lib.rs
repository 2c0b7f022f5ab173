//! The user's MCP servers as one catalogue: connect, list, search, name, call.
//!
//! Invariant: nothing an upstream sends or withholds can hang, crash or flood this process. Every
//! wait has an end, every buffer a bound, and one server's failure is one server's failure.

mod arguments;
mod bell;
mod caller;
mod catalogue;
mod clean;
mod config;
mod gateway;
mod help;
mod keyring;
mod oauth;
mod search;
mod secret;
mod settings;
mod signature;
mod tool;
mod unwrap;
mod upstream;
mod warden;
mod web;

pub use caller::{CallProgress, Caller, CanShow, OnProgress, Question};
pub use config::{
    Effect, Narrow, OAuthConfig, Parsed, Problem, RemoteConfig, RemoteKind, Scope, Secret,
    ServerConfig, StdioConfig, TransportConfig, TrustMode, merge, parse,
};
pub use gateway::{
    BreakerState, DirectTool, Gateway, SearchQuery, SearchReply, ServerHealth, ServerState,
    ToolInfo,
};
pub use oauth::{LoggedIn, LoginError, login};
pub use search::Detail;
pub use settings::Settings;
pub use upstream::{CallCounts, Latency};
pub use warden::{Warden, serve_warden};
