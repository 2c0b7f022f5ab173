//! The commands, one module each.

mod arguments;
mod code;
mod conformance;
mod doctor;
mod exec;
mod execution_output;
mod logs;
mod migrate;
mod own_functions;
mod packages;
mod progress;
mod scripts;
mod serve;
mod server_progress;
mod servers;
mod sessions;
mod terminal;
mod terminal_text;
mod token;
mod tools;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codexec_compat::Seed;
use codexec_gateway::{SearchWait, ToolCacheMode};
use codexec_server::mcp::CodexecTools;
use tracing_subscriber::EnvFilter;

use crate::cli::serve::ServeArgs;
use crate::cli::{Cli, Command, CommonArgs};
use crate::env;
use crate::parts::{self, Parts};

/// How long a search waits for a first match while servers start. An agent can ask again.
const FIRST_MATCH_WAIT: Duration = Duration::from_millis(250);

/// Returns the filter for log messages on stderr.
fn log_filter(common: &CommonArgs) -> anyhow::Result<EnvFilter> {
    if let Some(filter) = env::log_filter() {
        let filter = EnvFilter::try_new(filter);
        return filter.context("CODEXEC_LOG; write it like warn or codexec_gateway=debug");
    }
    let named = common.toolset.clone().or_else(|| env::toolset().map(|names| vec![names]));
    let mut named = named.iter().flatten().flat_map(|names| names.split(','));
    let has_bare = named.any(|name| name.trim() == CodexecTools::NAME);
    let Some((name, level)) = env::log_level(has_bare) else { return Ok(EnvFilter::new("warn")) };
    let word = match level.trim().to_ascii_lowercase().as_str() {
        "trace" => "trace",
        "debug" => "debug",
        "info" => "info",
        "warn" | "warning" => "warn",
        "error" | "critical" | "fatal" => "error",
        _ => {
            let level: String = level.chars().take(80).collect();
            bail!("{name} is {level:?}; write debug, info, warn or error");
        }
    };
    Ok(EnvFilter::new(word))
}

/// Returns how long a tool list waits for servers that are still starting.
fn catalogue_wait(command: &Command) -> (Duration, SearchWait) {
    // An agent prefers most tools soon; a person who asks for a list wants all of them.
    match command {
        Command::Serve(_) => (Duration::from_secs(5), SearchWait::FirstMatch(FIRST_MATCH_WAIT)),
        Command::Exec(_)
        | Command::Code(_)
        | Command::Scripts(_)
        | Command::Logs(_)
        | Command::Sessions(_)
        | Command::Packages(_)
        | Command::Migrate(_)
        | Command::Token(_)
        | Command::Doctor(_) => (Duration::from_secs(5), SearchWait::ResponsiveServers),
        Command::Tools(_) | Command::Servers(_) | Command::ConformanceClient { .. } => {
            (Duration::from_secs(60), SearchWait::AllServers)
        }
    }
}

/// Sends log messages to stderr.
fn start_log(cli: &Cli) -> anyhow::Result<()> {
    let filter = log_filter(&cli.common)?;
    // Its messages contain OAuth codes.
    let filter = filter.add_directive("rmcp::transport::auth=error".parse()?);
    // Stdout belongs to MCP.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match cli.command {
        None | Some(Command::Serve(_)) => log.init(),
        // A person reads the messages of all other commands.
        Some(_) => {
            log.without_time().with_target(false).init();
        }
    }
    Ok(())
}

pub(crate) fn run(mut cli: Cli) -> anyhow::Result<ExitCode> {
    start_log(&cli)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(async {
        let command = cli.command.unwrap_or_else(|| Command::Serve(ServeArgs::default()));
        if let Command::ConformanceClient { url } = &command {
            return conformance::run(url).await;
        }
        // Runs before settings are read: this command reports wrong settings itself.
        if let Command::Migrate(args) = command {
            return migrate::run(args, &parts::host_environment()?);
        }
        if let Command::Token(args) = command {
            return token::run(args, &parts::state_dir()?);
        }
        let patience = catalogue_wait(&command);
        let cache = match &command {
            Command::Tools(args) if args.wants_refresh() => ToolCacheMode::Never,
            Command::Tools(_)
            | Command::Exec(_)
            | Command::Code(_)
            | Command::Scripts(_)
            | Command::Logs(_)
            | Command::Sessions(_)
            | Command::Packages(_) => ToolCacheMode::Instead,
            Command::Serve(_)
            | Command::Servers(_)
            | Command::Doctor(_)
            | Command::Migrate(_)
            | Command::Token(_)
            | Command::ConformanceClient { .. } => ToolCacheMode::Meanwhile,
        };
        if matches!(command, Command::Code(_)) {
            // `codexec code` is MCPProxy's command, so it uses MCPProxy's settings.
            cli.common.toolset = Some(vec![Seed::Mcpproxy.toolset().to_owned()]);
        }
        let parts = Parts::read(&cli.common, patience, cache)?;
        match command {
            Command::Serve(args) => serve::run(parts, args).await,
            Command::Exec(args) => exec::run(parts, args).await,
            Command::Code(args) => code::run(parts, args).await,
            Command::Scripts(args) => scripts::run(parts, args).await,
            Command::Logs(args) => logs::run(parts, args).await,
            Command::Sessions(args) => sessions::run(parts, args).await,
            Command::Packages(args) => packages::run(parts, args).await,
            Command::Tools(args) => tools::run(&parts, args).await,
            Command::Servers(args) => servers::run(parts, args).await,
            Command::ConformanceClient { url } => conformance::run(&url).await,
            Command::Migrate(args) => migrate::run(args, &parts::host_environment()?),
            Command::Token(args) => token::run(args, &parts.home),
            Command::Doctor(args) => doctor::run(&parts, &args).await,
        }
    });
    // A hung disk must not delay the exit: everything required is already written.
    runtime.shutdown_background();
    done
}
