//! The arguments of `codexec code`, the same as those of `mcpproxy code`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum CodeCommand {
    /// Run JavaScript or TypeScript and print {ok, value} or {ok, error} as JSON; exit code 0 if
    /// the code succeeded, 1 if it failed, 2 if it could not be run
    Exec(CodeExecArgs),
    /// List the scripts that --script can run
    #[command(subcommand)]
    Scripts(CodeScriptsCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CodeScriptsCommand {
    /// List all scripts, one per line
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["code", "file", "script"]))]
pub(crate) struct CodeExecArgs {
    /// The code
    #[arg(long)]
    pub(crate) code: Option<String>,
    /// Read the code from a file
    #[arg(long)]
    pub(crate) file: Option<PathBuf>,
    /// Run a stored script, in its own language
    #[arg(long, value_name = "NAME")]
    pub(crate) script: Option<String>,
    /// javascript or typescript; default: from the file's extension, else javascript
    #[arg(long)]
    pub(crate) language: Option<String>,
    /// A JSON object that the code gets as `input`
    #[arg(long, value_name = "JSON", conflicts_with = "input_file")]
    pub(crate) input: Option<String>,
    /// Read the input from a file
    #[arg(long, value_name = "FILE")]
    pub(crate) input_file: Option<PathBuf>,
    /// The time limit in milliseconds, 1 to 600000; default: 120000
    #[arg(long, value_name = "MS")]
    pub(crate) timeout: Option<u64>,
    /// The most tool calls that the code may make; 0 means only the limit in the settings
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u64>,
    /// The servers whose tools the code may call; default: all
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) allowed_servers: Vec<String>,
}
