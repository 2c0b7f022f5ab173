//! The arguments of `codexec code`, as MCPProxy's users write them.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Code {
    /// Run JavaScript or TypeScript and print {ok, value} or {ok, error} as JSON; exit code 0 when
    /// it ran to its end, 1 when it failed, 2 when it could not be run
    Exec(Exec),
    /// The scripts that --script can name
    #[command(subcommand)]
    Scripts(Scripts),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Scripts {
    /// All of them, one a line
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["code", "file", "script"]))]
pub(crate) struct Exec {
    /// The code
    #[arg(long)]
    pub(crate) code: Option<String>,
    /// Read the code from a file
    #[arg(long)]
    pub(crate) file: Option<PathBuf>,
    /// Run a stored script, in its own language
    #[arg(long, value_name = "NAME")]
    pub(crate) script: Option<String>,
    /// javascript or typescript; by default as the file's name ends, else javascript
    #[arg(long)]
    pub(crate) language: Option<String>,
    /// A JSON object that the code finds as `input`
    #[arg(long, value_name = "JSON", conflicts_with = "input_file")]
    pub(crate) input: Option<String>,
    /// Read that from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) input_file: Option<PathBuf>,
    /// How many milliseconds it may run, 1 to 600000; 120000 by default
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
    /// How many tool calls it may make; 0 is no limit but that of the settings
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u64>,
    /// The servers whose tools it may call; none named means all
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) allowed_servers: Vec<String>,
}
