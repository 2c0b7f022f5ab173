//! The arguments of `codexec logs`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LogsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<LogsCommand>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogsCommand {
    /// Show the full record of one execution
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Words in the code or the output; without any, the newest executions
    pub(crate) words: Vec<String>,
    /// Only executions in this language
    #[arg(short, long)]
    pub(crate) language: Option<String>,
    /// success, failed, timeout, running, interrupted or cancelled
    #[arg(short, long)]
    pub(crate) status: Option<String>,
    /// Started at or after this time, for example 2026-02-09 (your time) or 2026-02-09T14:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Started before this time, for example 2026-02-10
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only executions of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only executions that called this tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// The most executions to show, up to 100
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// How many executions to skip
    #[arg(long, default_value_t = 0)]
    pub(crate) offset: u64,
    /// Show executions as they end, until Ctrl-C
    #[arg(short, long, conflicts_with = "offset")]
    pub(crate) follow: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The execution's id, or its beginning; exec_ may be left out
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
