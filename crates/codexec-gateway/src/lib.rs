//! The user's MCP servers as one catalogue: connect, list, search, name, call.
//!
//! Invariant: nothing an upstream sends or withholds can hang, crash or flood this process. Every
//! wait has an end, every buffer a bound, and one server's failure does not affect another.

mod arguments;
mod caller;
mod catalogue;
mod change_signal;
mod clean;
mod config;
mod exposure;
mod files;
mod finder;
mod gateway;
mod help;
mod hints;
mod keyring;
mod oauth;
mod observed_outputs;
mod private_files;
mod search;
mod secret;
mod server_approvals;
mod settings;
mod supervisor;
mod tool;
mod tool_cache;
mod tool_result;
mod trust;
mod typings;
mod upstream;
mod warden;
mod watch;
mod web;

pub use caller::{CallProgress, Caller, CanShow, OnProgress, Question};
pub use config::{
    Approvals, Client, Document, Effect, Found, Holds, Narrow, OAuthConfig, Parsed, PendingEntry,
    Place, Problem, ProjectServers, Reach, RemoteConfig, RemoteKind, Scope, Secret, ServerConfig,
    StdioConfig, TransportConfig, TrustMode, Tuning, Whereabouts, World, merge, parse, places,
    replaced, unreadable,
};
pub use exposure::Exposure;
pub use files::read_text;
pub use finder::Finder;
pub use gateway::{
    ApproveError, BreakerState, DirectTool, Gateway, SearchQuery, SearchReply, ServerCost,
    ServerHealth, ServerState, ToolInfo,
};
pub use oauth::{LoggedIn, LoginError, login};
pub use server_approvals::ServerApprovals;
pub use settings::Settings;
pub use supervisor::supervise;
pub use tool_cache::CacheUse;
pub use trust::{Line, Sign, Waiting};
pub use typings::Voice;
pub use upstream::{CallCounts, Latency, log_of};
pub use warden::{Warden, serve_warden};
pub use watch::Watch;
