//! The arguments of `codexec packages`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum PackagesCommand {
    /// Install packages for all code in a language
    Install(InstallArgs),
    /// Remove packages that are installed for all code; their dependencies stay
    Remove(RemoveArgs),
    /// List the packages that are installed for all code
    List(ListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// Package names, for example pandas, pandas==2.2.1 or left-pad@1.3.0
    #[arg(required = true)]
    pub(crate) packages: Vec<String>,
    /// python (pip) or node (npm)
    #[arg(short, long, default_value = "python")]
    pub(crate) language: String,
    /// Print JSON, one line per package
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Package names
    #[arg(required = true)]
    pub(crate) packages: Vec<String>,
    /// python (pip) or node (npm)
    #[arg(short, long, default_value = "python")]
    pub(crate) language: String,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only packages for python or for node
    #[arg(short, long)]
    pub(crate) language: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
