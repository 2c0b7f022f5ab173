//! The arguments of `codexec packages`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Packages {
    /// Install packages for all code in a language
    Install(Install),
    /// The packages that were installed for all code
    List(List),
}

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Names, as in pandas, pandas==2.2.1 or left-pad@1.3.0
    #[arg(required = true)]
    pub(crate) packages: Vec<String>,
    /// python (pip) or node (npm)
    #[arg(short, long, default_value = "python")]
    pub(crate) language: String,
    /// Print JSON, one line for each package
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those for python or for node
    #[arg(short, long)]
    pub(crate) language: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
