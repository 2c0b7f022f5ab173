//! The arguments of `codexec servers`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The server's name
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Only read the files; start no server
    #[arg(long)]
    pub(crate) no_check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// An environment variable for the program; may be given several times. The value may be
    /// `env:NAME`, `file:PATH` or `keyring:NAME`
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header for the URL, for example 'Authorization: env:TOKEN'; may be given several times
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// The transport; default: stdio for a program, http for a URL
    #[arg(short, long, value_enum)]
    pub(crate) transport: Option<Transport>,
    /// The server's name
    pub(crate) name: String,
    /// The server's URL, if it is not a program
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// The program and its arguments
    #[arg(last = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// The servers to import; without any, all that are enabled for code
    pub(crate) names: Vec<String>,
    /// Only servers of this client, for example claude-code, cursor or codex
    #[arg(long, value_name = "CLIENT")]
    pub(crate) from: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The server's name
    pub(crate) name: String,
    /// The most lines to show
    #[arg(short = 'n', long, default_value_t = 100)]
    pub(crate) lines: usize,
}

#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// The server's name
    pub(crate) name: String,
    /// Print the address instead of opening a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    /// The server's name; without it, everything that waits for approval
    pub(crate) name: Option<String>,
    /// Only this tool; may be given several times
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Vec<String>,
    /// Approve without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Transport {
    Stdio,
    Http,
    Sse,
}
