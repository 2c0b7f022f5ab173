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

pub use caller::{CallProgress, Caller, ElicitationSupport, OnProgress, Question};
pub use config::{
    ClaudeApprovals, ConfigDocument, ConfigEnv, ConfigLocation, ConfigOwner, ConfigProblem,
    ConfigScope, ConfigSource, DiscoveredServer, LocationEnv, LocationKind, OAuthConfig,
    ParsedConfig, PendingEntry, ProblemEffect, ProjectServers, RemoteConfig, RemoteKind,
    SecretSource, ServerConfig, ServerOptions, ServerTuning, StdioConfig, TransportConfig,
    TrustMode, find_config_locations, find_replaced_system, merge_configs, parse_config,
    unreadable_config,
};
pub use exposure::Exposure;
pub use files::read_text;
pub use finder::ToolFinder;
pub use gateway::{
    ApproveError, BreakerState, DirectTool, Gateway, SearchQuery, SearchReply, ServerCost,
    ServerHealth, ServerState, ToolInfo,
};
pub use oauth::{LoginError, LoginSummary, login};
pub use server_approvals::ServerApprovals;
pub use settings::GatewaySettings;
pub use supervisor::supervise;
pub use tool_cache::ToolCacheMode;
pub use trust::{DiffLine, DiffSign, PendingApproval};
pub use typings::TypingsLanguage;
pub use upstream::{CallCounts, Latency, read_server_log};
pub use warden::{Warden, serve_warden};
pub use watch::FileWatcher;
