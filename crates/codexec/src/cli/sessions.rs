//! The arguments of `codexec sessions`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// Sessions of every codexec that runs here, and the last that have ended, with the reason
    List(List),
    /// Work in a session of your own, cell by cell
    ///
    /// At a terminal a line is a cell; one that ends with : { ( [ , or \ (in bash also with do or
    /// then) begins a longer cell, which an empty line ends. From a pipe, empty lines separate
    /// cells; a cell goes on where the line after is indented or begins with a closing bracket.
    /// The session ends with the input. Ctrl-C stops the cell that runs.
    Open(Open),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// How many
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Open {
    /// python, javascript, typescript, node or bash
    #[arg(short, long, default_value = "python")]
    pub(crate) language: String,
    /// A directory of yours to work in
    #[arg(short, long, value_name = "DIR")]
    pub(crate) working_dir: Option<PathBuf>,
    /// How long each cell may run, for example 500ms, 10s or 2m
    #[arg(short, long, value_parser = super::duration)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Print JSON, one line for each cell
    #[arg(long)]
    pub(crate) json: bool,
}
