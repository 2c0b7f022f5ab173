//! The arguments of `codexec migrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use codexec_compat::Seed;

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// The system that you migrate from
    #[arg(long, value_enum, value_name = "SYSTEM", required_unless_present = "list")]
    pub(crate) from: Option<SeedArg>,
    /// The system's own file, if it is not at its usual path: settings and servers in JSON, servers
    /// in TOML, or for codexec lines of NAME=value
    #[arg(long, value_name = "FILE")]
    pub(crate) path: Option<PathBuf>,
    /// List every setting of these systems and its meaning in codexec
    #[arg(long, conflicts_with_all = ["from", "path"])]
    pub(crate) list: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SeedArg {
    /// Code Executor MCP
    CodeExecutor,
    /// CodeExec MCP
    Codexec,
    /// MCP Server Code Execution Mode
    CodeExecutionMode,
    /// MCPProxy
    Mcpproxy,
}

impl SeedArg {
    pub(crate) fn seed(self) -> Seed {
        match self {
            SeedArg::CodeExecutor => Seed::CodeExecutor,
            SeedArg::Codexec => Seed::Codexec,
            SeedArg::CodeExecutionMode => Seed::CodeExecutionMode,
            SeedArg::Mcpproxy => Seed::Mcpproxy,
        }
    }
}
