//! The systems that codexec replaces ("seeds"): their tools in their own formats, their settings,
//! and the migration of a user's settings.
//!
//! Invariant: everything here is an edge. The tools read arguments, run code by `App::execute`, and
//! format the result; no rule about code is decided here.

mod code_execution_mode;
mod code_executor;
mod mcpproxy;
mod migrate;
mod seed;
pub mod settings;
mod user_environment;

pub use code_execution_mode::{BridgeSettings, CodeExecutionModeTools, OutputMode};
pub use code_executor::{CodeExecutorTools, ExecutorSettings};
pub use mcpproxy::{CodeExecution, CodeExecutionStatus, McpproxyTools, NamedScript, ProxySettings};
pub use migrate::{Migration, MigrationError, SeedServerFiles, server_table, settings_page};
pub use seed::Seed;
pub use user_environment::UserEnvironment;
