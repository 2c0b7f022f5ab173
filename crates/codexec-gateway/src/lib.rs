//! The user's MCP servers as one catalogue: connect, list, search, name, call.
//!
//! Invariant: nothing an upstream sends or withholds can hang, crash or flood this process. Every
//! wait has an end, every buffer a bound, and one server's failure does not affect another.

mod arguments;
mod caller;
mod catalogue;
mod change_signal;
mod gateway;
mod help;
mod hints;
mod keyring;
mod oauth;
mod observed_outputs;
mod rpc_error;
mod secret;
mod settings;
mod supervisor;
mod tool;
mod tool_cache;
mod tool_result;
mod trust;
mod upstream;
mod warden;
mod web;

pub use caller::{
    CallProgress, Caller, ElicitationSupport, FollowCall, OnProgress, Question, QuestionKind,
    QuestionSupport,
};
pub use gateway::{
    ApproveError, BreakerState, DirectTool, Gateway, MissingReason, MissingServer, Relay,
    RelayCall, RelayError, RelayRequest, RoundInput, SearchQuery, SearchReply, ServerCost,
    ServerHealth, ServerMetrics, ServerState, ToolInfo, describe_missing,
};
pub use oauth::{LoginError, LoginSummary, login};
pub use rpc_error::RpcError;
pub use settings::{GatewaySettings, SearchWait};
pub use supervisor::supervise;
pub use tool_cache::ToolCacheMode;
pub use trust::PendingApproval;
pub use upstream::{CallCounts, Latency, ServerNotice, read_server_log};
pub use warden::{Warden, serve_warden};
