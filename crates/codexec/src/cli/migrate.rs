//! The arguments of `codexec migrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use codexec_server::Toolset;

#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// The system that you have used until now
    #[arg(long, value_enum, value_name = "SYSTEM", required_unless_present = "list")]
    pub(crate) from: Option<System>,
    /// Its own file, if it is not where it usually is: settings and servers in JSON, servers in
    /// TOML, or for codexec lines of NAME=value
    #[arg(long, value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
    /// Every setting of these systems, and what it is here
    #[arg(long, conflicts_with_all = ["from", "path"])]
    pub(crate) list: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum System {
    /// Code Executor MCP
    CodeExecutor,
    /// CodeExec MCP
    Codexec,
    /// MCP Server Code Execution Mode
    CodeExecutionMode,
    /// MCPProxy
    Mcpproxy,
}

impl System {
    pub(crate) fn toolset(self) -> Toolset {
        match self {
            System::CodeExecutor => Toolset::CodeExecutor,
            System::Codexec => Toolset::Codexec,
            System::CodeExecutionMode => Toolset::CodeExecutionMode,
            System::Mcpproxy => Toolset::Mcpproxy,
        }
    }
}
