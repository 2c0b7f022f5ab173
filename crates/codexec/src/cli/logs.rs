//! The arguments of `codexec logs`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Logs {
    #[command(subcommand)]
    pub(crate) command: Option<LogsCommand>,
    #[command(flatten)]
    pub(crate) search: Search,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogsCommand {
    /// All that is kept of one execution
    Show(Show),
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words that are in the code or the output; without any, the newest executions
    pub(crate) words: Vec<String>,
    /// Only those in this language
    #[arg(short, long)]
    pub(crate) language: Option<String>,
    /// success, failed, timeout, running, interrupted or cancelled
    #[arg(short, long)]
    pub(crate) status: Option<String>,
    /// Not before, for example 2026-02-09 or 2026-02-09T14:30:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Before, for example 2026-02-10
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only those of this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only those that called this tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// How many, up to 100
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// How many to leave out at the beginning
    #[arg(long, default_value_t = 0)]
    pub(crate) offset: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The execution's id
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
