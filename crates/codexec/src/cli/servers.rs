//! The arguments of `codexec servers`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// The server's name
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The server's name
    pub(crate) name: String,
    /// The program and its arguments, after `--`; or a URL
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The server's name
    pub(crate) name: String,
    /// How many lines
    #[arg(short = 'n', long, default_value_t = 100)]
    pub(crate) lines: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The server's name
    pub(crate) name: String,
    /// Print the address instead of opening a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// The server's name; without it, every server that waits for approval is shown
    pub(crate) name: Option<String>,
    /// Only this tool; may be given several times
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: Vec<String>,
    /// Approve without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
}
