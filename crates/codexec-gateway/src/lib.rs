//! The user's MCP servers as one catalogue: connect, list, search, name, call.
//!
//! Invariant: nothing an upstream sends or withholds can hang, crash or flood this process. Every
//! wait has an end, every buffer a bound, and one server's failure is one server's failure.

mod arguments;
mod catalogue;
mod clean;
mod config;
mod files;
mod gateway;
mod help;
mod search;
mod secret;
mod settings;
mod signature;
mod tool;
mod unwrap;
mod upstream;
mod warden;
mod watch;

pub use config::{
    Approvals, Client, Document, Effect, Found, Holds, Narrow, OAuthConfig, Parsed, Place, Problem,
    Reach, RemoteConfig, RemoteKind, Scope, Secret, ServerConfig, StdioConfig, TransportConfig,
    TrustMode, Tuning, Whereabouts, World, merge, parse, places, unreadable,
};
pub use files::read_text;
pub use gateway::{Gateway, SearchQuery, SearchReply, ServerHealth, ServerState, ToolInfo};
pub use search::Detail;
pub use settings::Settings;
pub use upstream::log_of;
pub use warden::{Warden, serve_warden};
pub use watch::Watch;
