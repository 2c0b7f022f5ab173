//! The arguments of `codexec sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions of every running codexec, and recently ended ones with the reason
    List(ListArgs),
    /// Work in a session of your own, cell by cell
    ///
    /// At a terminal, each line is a cell. A line that ends with : { ( [ , or \ (in bash also with
    /// do or then) starts a longer cell, which an empty line ends. From a pipe, empty lines
    /// separate cells; a cell continues if the next line is indented or starts with a closing
    /// bracket. The session ends with the input, and at a terminal with exit(). Ctrl-C stops the
    /// running cell. At a terminal, the arrow keys bring back earlier lines, also those of earlier
    /// sessions.
    Open(OpenArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The most sessions to show
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// python, javascript, typescript, node or bash
    #[arg(short, long, default_value = "python")]
    pub(crate) language: String,
    /// A directory of yours to work in
    #[arg(short, long, value_name = "DIR")]
    pub(crate) working_dir: Option<PathBuf>,
    /// The time limit for each cell, for example 500ms, 10s or 2m
    #[arg(short, long, value_parser = super::duration)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Print JSON, one line per cell
    #[arg(long)]
    pub(crate) json: bool,
}
