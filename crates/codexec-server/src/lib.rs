//! Runs executions, and serves them over MCP.
//!
//! Invariant: all code runs through [`App::execute`]. No edge starts a guest in another way; edges
//! may read the store and the catalogue.

mod allowance;
mod answers;
mod app;
mod artifact_files;
mod budget;
mod client;
mod connection;
mod denial;
mod discovery;
mod error;
mod escaped_text;
mod execute;
mod execution_packages;
mod execution_request;
mod fields;
mod guest_run;
mod hints;
mod images;
mod language_guess;
mod live_policy;
mod live_settings;
mod live_streams;
pub mod mcp;
mod metrics;
mod outer_execution;
mod output_lines;
pub mod own;
mod progress;
mod records;
mod reply;
mod running_executions;
mod sessions;
mod snapshots;
mod token_scope;
mod tool_text;
mod working_dir;

pub use app::App;
pub use artifact_files::{ArtifactError, ArtifactFile};
pub use budget::TextBudget;
pub use client::Client;
pub use connection::{Connection, ReadAccess};
pub use denial::RequestWords;
pub use discovery::{
    DISCOVERY_SERVER, DiscoveryRules, FinishedDiscovery, ReportedCall, RequestObserver,
    RequestObservers,
};
pub use error::ExecuteError;
pub use escaped_text::escape_name;
pub use execute::FinishedExecution;
pub use execution_request::ExecutionRequest;
pub use fields::{FieldError, Fields};
pub use images::Images;
pub use live_policy::LivePolicy;
pub use live_settings::LiveSettings;
pub use live_streams::{LiveStreams, OutputPiece};
pub use metrics::{MetricKind, MetricsText, write_metrics};
pub use output_lines::OutputLines;
pub use progress::Progress;
pub use records::Records;
pub use reply::{
    ToolReply, explain_outcome, render_failure, render_notes, render_reply, render_value,
    resource_uri,
};
pub use running_executions::{
    ExecutionChange, ExecutionEvent, RunningExecution, RunningExecutions, Watch, WatchError,
    coarse_status, last_pieces, watch_channel,
};
pub use sessions::{
    ClosedSession, OpenSession, OpenSessions, RecordedCell, SessionError, SessionInfo,
    SessionSettings,
};
pub use snapshots::SnapshotError;
pub use token_scope::{InvalidScope, TokenScope};
pub use tool_text::render_tool;
pub use working_dir::{DirError, resolve_dir};
