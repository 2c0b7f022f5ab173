pub(crate) mod code;
pub(crate) mod logs;
pub(crate) mod migrate;
pub(crate) mod packages;
pub(crate) mod scripts;
pub(crate) mod servers;
pub(crate) mod sessions;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use codexec_types::{Detail, ToolKind};

/// Run agents' code in strong sandboxes, with every MCP tool at hand.
///
/// Without a command, codexec serves MCP on standard input and output.
#[derive(Debug, Parser)]
#[command(name = "codexec", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Args)]
pub(crate) struct Common {
    /// A file with an `mcpServers` key; may be given several times, the last wins
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
    /// Settings other than $CODEXEC_HOME/config.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Which tools a client is shown: compact (the default), codexec, code-executor,
    /// code-execution-mode, mcpproxy, direct, or several as compact,direct
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    pub(crate) toolset: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP on standard input and output
    Serve,
    /// Run code and print its result
    Exec(Exec),
    /// Run JavaScript and TypeScript as MCPProxy does
    #[command(subcommand)]
    Code(code::Code),
    /// Scripts that are kept: find, read, save and run them
    #[command(subcommand)]
    Scripts(scripts::Scripts),
    /// What has run: search it, or read one execution whole
    Logs(logs::Logs),
    /// Sessions, which keep variables, imports and files between executions
    #[command(subcommand)]
    Sessions(sessions::Sessions),
    /// Packages that code can use
    #[command(subcommand)]
    Packages(packages::Packages),
    /// Look at the tools that code can call
    #[command(subcommand)]
    Tools(Tools),
    /// See and change which MCP servers code can reach
    #[command(subcommand)]
    Servers(Servers),
    /// Print what you have set for a system that codexec replaces, as settings of codexec
    Migrate(migrate::Migrate),
    /// What the conformance suite of MCP starts to look at us as a client
    #[command(hide = true)]
    ConformanceClient {
        /// Where the suite's server listens
        url: String,
    },
    /// Tell what protects you on this machine, and what does not
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Exec {
    /// typescript, javascript, python, bash or node, or ts, js, py, sh, mjs; by default as the
    /// file's name ends, else typescript
    #[arg(short, long)]
    pub(crate) language: Option<String>,
    /// The code; without it and without --file it is read from standard input
    pub(crate) code: Option<String>,
    /// Read the code from a file
    #[arg(short, long, conflicts_with = "code")]
    pub(crate) file: Option<PathBuf>,
    /// Run a saved script, in its own language
    #[arg(short, long, value_name = "NAME", conflicts_with_all = ["code", "file", "language"])]
    pub(crate) script: Option<String>,
    /// JSON that the code finds as `input`
    #[arg(short, long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// How long it may run, for example 500ms, 10s or 2m
    #[arg(short, long, value_parser = duration)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// A directory of yours to work in, beside those that the settings allow; not for typescript
    /// and javascript, which have no files
    #[arg(short, long, value_name = "DIR")]
    pub(crate) working_dir: Option<PathBuf>,
    /// The tools it may call, for example github.* or time.get_current_time; "" denies all
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// How many tool calls it may make
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
pub(crate) enum Tools {
    /// All tools, one a line
    List {
        /// Ask the servers, whatever is known of their tools
        #[arg(long)]
        refresh: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The best matches for a sentence
    Search {
        /// What you want to do, in words; without any, all tools in their order
        query: Vec<String>,
        /// How many
        #[arg(short = 'n', long, default_value_t = 10)]
        limit: usize,
        /// How much of each
        #[arg(long, value_enum, default_value = "summary")]
        detail: DetailArg,
        /// Only this server's
        #[arg(long)]
        server: Option<String>,
        /// Only tools that change nothing, that destroy nothing, or that may
        #[arg(long, value_enum)]
        kind: Option<KindArg>,
        /// Ask the servers, whatever is known of their tools
        #[arg(long)]
        refresh: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// What listing every tool would cost an agent, and what codexec's own few cost
    Stats {
        /// Ask the servers, whatever is known of their tools
        #[arg(long)]
        refresh: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// One tool's whole definition
    Schema {
        /// server.tool
        name: String,
        /// Ask the servers, whatever is known of their tools
        #[arg(long)]
        refresh: bool,
        /// Only its declaration in this language, or all of it as JSON
        #[arg(long = "as", value_enum, value_name = "FORM", conflicts_with = "json")]
        form: Option<FormArg>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Servers {
    /// Every server that was found: where it is named, how it is doing, what to do
    List(servers::List),
    /// Name a server in our own file
    Add(servers::Add),
    /// Take a server out of our own file
    Remove(servers::Name),
    /// Use a server that was switched off
    Enable(servers::Name),
    /// Leave a server out, whichever file names it
    Disable(servers::Name),
    /// What a server wrote on its standard error
    Logs(servers::Logs),
    /// Start a server anew in every codexec that runs
    Restart(servers::Name),
    /// Log in to a remote server in the browser
    Login(servers::Login),
    /// Show the servers and tools that wait for your approval, and let them be used
    Approve(servers::Approve),
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

impl From<DetailArg> for Detail {
    fn from(arg: DetailArg) -> Detail {
        match arg {
            DetailArg::Names => Detail::Names,
            DetailArg::Summary => Detail::Summary,
            DetailArg::Full => Detail::Full,
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

impl Tools {
    pub(crate) fn wants_refresh(&self) -> bool {
        match self {
            Tools::List { refresh, .. }
            | Tools::Search { refresh, .. }
            | Tools::Stats { refresh, .. }
            | Tools::Schema { refresh, .. } => *refresh,
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
