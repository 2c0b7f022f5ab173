//! The arguments of `codexec scripts`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ScriptsCommand {
    /// List all scripts, one per line
    List(ListArgs),
    /// Search scripts by what they do
    Search(SearchArgs),
    /// Show a script's description and code
    Show(ShowArgs),
    /// Save code under a name; an existing name gets a new version
    Save(SaveArgs),
    /// Run a script
    Run(RunArgs),
    /// Delete a script and all of its versions
    Delete(NameArgs),
    /// List the saved versions of a script
    Versions(NameArgs),
}

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// The script's name
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only scripts in this language
    #[arg(short, long)]
    pub(crate) language: Option<String>,
    /// Only scripts with this tag
    #[arg(short, long)]
    pub(crate) tag: Option<String>,
    /// The most scripts to show
    #[arg(short = 'n', long, default_value_t = 100)]
    pub(crate) limit: u32,
    /// How many scripts to skip
    #[arg(long, default_value_t = 0)]
    pub(crate) offset: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What the script should do, in words
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// The most scripts to show
    #[arg(short = 'n', long, default_value_t = 10)]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The script's name
    pub(crate) name: String,
    /// An earlier version
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// Print the code and nothing else
    #[arg(long, conflicts_with = "json")]
    pub(crate) code: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    /// The script's name: letters, digits, `_`, `-`, `.` and spaces
    pub(crate) name: String,
    /// Read the code from a file; without it, from standard input
    #[arg(short, long)]
    pub(crate) file: Option<PathBuf>,
    /// The language; default: from the file's extension
    #[arg(short, long, required_unless_present = "file")]
    pub(crate) language: Option<String>,
    /// What the script is for, in one sentence
    #[arg(short, long, default_value = "")]
    pub(crate) description: String,
    /// A tag; may be given several times
    #[arg(short, long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// A package that the script needs; may be given several times
    #[arg(short, long, value_name = "PACKAGE")]
    pub(crate) package: Vec<String>,
    /// A JSON Schema for the script's `input`; checked before each run
    #[arg(long, value_name = "JSON")]
    pub(crate) parameters: Option<String>,
    /// The execution that the code comes from
    #[arg(long, value_name = "ID")]
    pub(crate) source: Option<String>,
    /// Show the script to clients as a tool of its own
    #[arg(long)]
    pub(crate) expose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The script's name
    pub(crate) name: String,
    /// An earlier version
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// JSON that the script gets as `input`
    #[arg(short, long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// The time limit, for example 500ms, 10s or 2m
    #[arg(short, long, value_parser = super::duration)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// A directory of yours to work in
    #[arg(short, long, value_name = "DIR")]
    pub(crate) working_dir: Option<PathBuf>,
    /// The tools that the script may call, for example github.*; "" denies all
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Arguments for the script itself
    #[arg(last = true)]
    pub(crate) args: Vec<String>,
}
