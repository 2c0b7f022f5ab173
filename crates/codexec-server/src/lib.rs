//! Runs executions, and serves them over MCP.
//!
//! Invariant: all code runs through [`App::execute`]. No edge talks to a worker, an upstream or the
//! database directly.

mod allowance;
mod answers;
mod artifact_files;
mod audit;
mod budget;
mod client;
mod code_execution;
mod discovery;
mod error;
mod escaped_text;
mod execute;
mod execution_packages;
mod execution_request;
mod fields;
mod images;
mod live_settings;
pub mod mcp;
mod outer_execution;
pub mod own;
mod records;
mod reply;
mod seeds;
mod sessions;
mod snapshots;
mod tool_text;
mod toolset;
mod toon;
mod working_dir;

pub use budget::TextBudget;
pub use client::Client;
pub use code_execution::{CodeExecution, CodeExecutionStatus, NamedScript};
pub use error::ExecuteError;
pub use execute::{App, FinishedExecution, Progress};
pub use execution_request::ExecutionRequest;
pub use images::Images;
pub use live_settings::LiveSettings;
pub use records::Records;
pub use reply::{ToolReply, explain_outcome, render_failure, render_reply};
pub use seeds::{BridgeSettings, ExecutorSettings, OutputMode, ProxySettings, Seeds};
pub use sessions::{
    ClosedSession, OpenSession, OpenSessions, RecordedCell, SessionError, SessionInfo,
    SessionSettings,
};
pub use snapshots::SnapshotError;
pub use tool_text::render_tool;
pub use toolset::{InvalidToolset, Toolset, Toolsets};
pub use working_dir::DirError;
