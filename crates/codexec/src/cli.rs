pub(crate) mod code;
pub(crate) mod logs;
pub(crate) mod migrate;
pub(crate) mod packages;
pub(crate) mod scripts;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod sessions;
pub(crate) mod token;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use codexec_types::{ToolDetail, ToolKind};

/// Run agents' code in strong sandboxes, with every MCP tool at hand.
///
/// Without a command, codexec serves MCP on standard input and output.
#[derive(Debug, Parser)]
#[command(name = "codexec", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// A file with an `mcpServers` key; may be given several times, the last one wins
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// Read settings from this file instead of $CODEXEC_HOME/config.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The tools that clients see: compact (the default), codexec, code-executor,
    /// code-execution-mode, mcpproxy, direct, or several like compact,direct
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    pub(crate) toolset: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP on standard input and output, or over HTTP
    Serve(serve::ServeArgs),
    /// Run code, and print its output and its result
    ///
    /// Output is printed as it comes. Code in python, bash and node reads what codexec gets on
    /// standard input; typescript and javascript have no standard input, pass them data with
    /// --input. The exit code is that of the program in python, bash and node, 1 if the code threw
    /// or was stopped, and 2 if codexec could not run it; --json has the difference as `outcome`.
    Exec(ExecArgs),
    /// Run JavaScript and TypeScript as MCPProxy does
    #[command(subcommand)]
    Code(code::CodeCommand),
    /// Find, read, save and run saved scripts
    #[command(subcommand)]
    Scripts(scripts::ScriptsCommand),
    /// Search past executions, or show one in full
    Logs(logs::LogsArgs),
    /// List sessions, or work in one; a session keeps variables, imports and files
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Install, list and remove packages that code can use
    #[command(subcommand)]
    Packages(packages::PackagesCommand),
    /// List and search the tools that code can call
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// List, add, approve and change the MCP servers that code can reach
    #[command(subcommand)]
    Servers(ServersCommand),
    /// Make, list and revoke the tokens of clients that use HTTP
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Print your settings for a system that codexec replaces as codexec settings
    Migrate(migrate::MigrateArgs),
    /// Run as the client under test for the MCP conformance suite
    #[command(hide = true)]
    ConformanceClient {
        /// The URL of the suite's server
        url: String,
    },
    /// Check which sandbox layers, languages and servers work on this machine
    Doctor(DoctorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Start no server
    #[arg(long)]
    pub(crate) no_check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// typescript, javascript, python, bash or node, or ts, js, py, sh, mjs; default: from the
    /// file's extension or first line; a text needs it
    #[arg(short, long)]
    pub(crate) language: Option<String>,
    /// The code, or the name of a file such as first.ts; without it and without --file, codexec
    /// reads the code from standard input
    pub(crate) code: Option<String>,
    /// Read the code from a file; - is standard input
    #[arg(short, long, conflicts_with = "code")]
    pub(crate) file: Option<PathBuf>,
    /// Run a saved script, in its own language
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["code", "file", "language"])]
    pub(crate) script: Option<String>,
    /// JSON that the code gets as `input`; - reads it from standard input
    #[arg(short, long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// The time limit, for example 500ms, 10s or 2m
    #[arg(short, long, value_parser = duration)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// A directory of yours to work in, even if the settings do not allow it; not for typescript
    /// and javascript, which have no files
    #[arg(short, long, value_name = "DIR")]
    pub(crate) working_dir: Option<PathBuf>,
    /// The tools that the code may call, for example github.* or time.get_current_time; "" denies
    /// all
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// The most tool calls that the code may make
    #[arg(long, value_name = "N")]
    pub(crate) max_tool_calls: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Arguments for the code itself
    #[arg(last = true)]
    pub(crate) args: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools with a summary of each
    List {
        /// Show how each tool is called
        #[arg(short, long)]
        verbose: bool,
        /// Ask the servers instead of using the cached tool lists
        #[arg(long)]
        refresh: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Search tools by what they do
    Search {
        /// What you want to do, in words; without any, all tools are listed
        query: Vec<String>,
        /// The most tools to show
        #[arg(short = 'n', long, default_value_t = 10)]
        limit: usize,
        /// How much to show of each tool
        #[arg(long, value_enum, default_value = "summary")]
        detail: DetailArg,
        /// Only tools of this server
        #[arg(long)]
        server: Option<String>,
        /// Only tools that change nothing, that destroy nothing, or that may destroy something
        #[arg(long, value_enum)]
        kind: Option<KindArg>,
        /// Ask the servers instead of using the cached tool lists
        #[arg(long)]
        refresh: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Compare the tokens that listing every tool costs with the tokens of codexec's own tools
    Stats {
        /// Ask the servers instead of using the cached tool lists
        #[arg(long)]
        refresh: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one tool's full definition
    Schema {
        /// server.tool
        name: String,
        /// Ask the servers instead of using the cached tool lists
        #[arg(long)]
        refresh: bool,
        /// Print only the declaration in this language, or the full definition as JSON
        #[arg(long = "as", value_enum, value_name = "FORM", conflicts_with = "json")]
        form: Option<FormArg>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// List every server: the file that names it, its state, and what to do
    List(servers::ListArgs),
    /// Add a server to codexec's own settings
    Add(servers::AddArgs),
    /// Remove a server from codexec's own settings
    Remove(servers::NameArgs),
    /// Enable a disabled server
    Enable(servers::NameArgs),
    /// Disable a server, whichever file names it
    Disable(servers::NameArgs),
    /// Copy servers from your clients' files to codexec's own settings, so that you can remove
    /// them there
    Import(servers::ImportArgs),
    /// Show what a server wrote to its standard error
    Logs(servers::LogsArgs),
    /// Restart a server in every running codexec
    Restart(servers::NameArgs),
    /// Log in to a remote server in the browser
    Login(servers::LoginArgs),
    /// Review and approve servers and tools that wait for your approval
    Approve(servers::ApproveArgs),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum FormArg {
    Typescript,
    Python,
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum DetailArg {
    Names,
    Summary,
    Full,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum KindArg {
    ReadOnly,
    Safe,
    Destructive,
}

impl From<DetailArg> for ToolDetail {
    fn from(arg: DetailArg) -> ToolDetail {
        match arg {
            DetailArg::Names => ToolDetail::Names,
            DetailArg::Summary => ToolDetail::Summary,
            DetailArg::Full => ToolDetail::Full,
        }
    }
}

impl From<KindArg> for ToolKind {
    fn from(arg: KindArg) -> ToolKind {
        match arg {
            KindArg::ReadOnly => ToolKind::ReadOnly,
            KindArg::Safe => ToolKind::Safe,
            KindArg::Destructive => ToolKind::Destructive,
        }
    }
}

impl ToolsCommand {
    pub(crate) fn wants_refresh(&self) -> bool {
        match self {
            ToolsCommand::List { refresh, .. }
            | ToolsCommand::Search { refresh, .. }
            | ToolsCommand::Stats { refresh, .. }
            | ToolsCommand::Schema { refresh, .. } => *refresh,
        }
    }
}

fn duration(text: &str) -> Result<std::time::Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| "write it like 500ms, 10s or 2m".to_owned())?;
    let ms = match unit {
        "ms" => number,
        "s" | "" => number.saturating_mul(1_000),
        "m" => number.saturating_mul(60_000),
        _ => return Err("write it like 500ms, 10s or 2m".to_owned()),
    };
    Ok(std::time::Duration::from_millis(ms))
}
