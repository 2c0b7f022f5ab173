//! The arguments of `codexec scripts`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum Scripts {
    /// All scripts, one a line
    List(List),
    /// The best matches for some words
    Search(Search),
    /// One script: what it is for, and its code
    Show(Show),
    /// Keep code under a name; a name that is there gets a new version
    Save(Save),
    /// Run a script
    Run(Run),
    /// Remove a script and all of its versions
    Delete(Name),
    /// The versions of a script that are kept
    Versions(Name),
}

#[derive(Debug, Args)]
pub(crate) struct Name {
    /// The script's name
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only those in this language
    #[arg(short, long)]
    pub(crate) language: Option<String>,
    /// Only those with this tag
    #[arg(short, long)]
    pub(crate) tag: Option<String>,
    /// How many
    #[arg(short = 'n', long, default_value_t = 100)]
    pub(crate) limit: u32,
    /// How many to leave out at the beginning
    #[arg(long, default_value_t = 0)]
    pub(crate) offset: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// What it should do, in words
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    /// How many
    #[arg(short = 'n', long, default_value_t = 10)]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
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
pub(crate) struct Save {
    /// The script's name: letters, digits, `_`, `-`, `.` and spaces
    pub(crate) name: String,
    /// Read the code from a file; without it, from standard input
    #[arg(short, long)]
    pub(crate) file: Option<PathBuf>,
    /// The language; by default as the file's name ends
    #[arg(short, long, required_unless_present = "file")]
    pub(crate) language: Option<String>,
    /// What it is for, in a sentence
    #[arg(short, long, default_value = "")]
    pub(crate) description: String,
    /// A tag; may be given several times
    #[arg(short, long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// A package that it needs; may be given several times
    #[arg(short, long, value_name = "PACKAGE")]
    pub(crate) package: Vec<String>,
    /// A JSON Schema of what it finds as `input`; checked before each run
    #[arg(long, value_name = "JSON")]
    pub(crate) parameters: Option<String>,
    /// The execution that it comes from
    #[arg(long, value_name = "ID")]
    pub(crate) source: Option<String>,
    /// Let clients see it as a tool of its own
    #[arg(long)]
    pub(crate) expose: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The script's name
    pub(crate) name: String,
    /// An earlier version
    #[arg(long, value_name = "N")]
    pub(crate) version: Option<u32>,
    /// JSON that it finds as `input`
    #[arg(short, long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// How long it may run, for example 500ms, 10s or 2m
    #[arg(short, long, value_parser = super::duration)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// A directory of yours to work in
    #[arg(short, long, value_name = "DIR")]
    pub(crate) working_dir: Option<PathBuf>,
    /// The tools it may call, for example github.*; "" denies all
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Arguments for the script itself
    #[arg(last = true)]
    pub(crate) args: Vec<String>,
}
