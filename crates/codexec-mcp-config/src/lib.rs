//! The MCP servers that config files define: codexec's own file, and those of every MCP client.
//!
//! Invariant: an invalid file or entry is reported and hides no other, and an entry that came with a
//! project, or that a guest may have written, starts nothing until the user approves it. Only
//! `sources` reads files; parsing does no I/O, and nothing here reads the environment.

// The result: one server, whichever file defines it.
mod server;

// Owners and locations of config files, and where they are.
mod client;
mod locations;

// From a file's text to servers: syntax, section, entry, values.
mod parse;

mod node;
mod syntax;

mod dialect;
mod section;

mod entry;
mod expand;
mod own_program;
mod relative_paths;
mod server_name;

// The servers of all files together.
mod merge;

// Entries that wait for the user's approval.
mod claude_approvals;
mod difference;
mod pending;
mod server_approvals;

// All files of a user and a project, read and read again.
mod sources;

use claude_approvals::ClaudeApprovals;
pub use client::ConfigOwner;
use client::ConfigScope;
pub use difference::{DiffLine, DiffSign, find_differences};
pub use parse::{
    ConfigDocument, ConfigProblem, DiscoveredServer, ParsedConfig, ProblemEffect, ServerTuning,
};
use parse::{ConfigEnv, ConfigSource};
pub use pending::{PendingEntry, ProjectServers};
pub use relative_paths::{is_code, is_interpreter, program_name};
pub use server::{
    OAuthConfig, RemoteConfig, RemoteKind, SecretSource, ServerConfig, ServerOptions, StdioConfig,
    TransportConfig, TrustMode,
};
pub use server_approvals::ServerApprovals;
pub use sources::{DiscoverySettings, ServerRules, ServerSources, SourceEnv};
