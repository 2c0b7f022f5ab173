//! One file per command.

mod code;
mod conformance;
mod doctor;
mod exec;
mod given;
mod logs;
mod migrate;
mod own;
mod packages;
mod ran;
mod scripts;
mod serve;
mod servers;
mod sessions;
mod shown;
mod tools;
mod watched;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use codexec_gateway::CacheUse;
use codexec_server::Toolset;
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command, Common};
use crate::env;
use crate::parts::{self, Parts};

/// What is told on standard error.
fn log_filter(common: &Common) -> anyhow::Result<EnvFilter> {
    if let Some(filter) = env::log_filter() {
        let filter = EnvFilter::try_new(filter);
        return filter.context("CODEXEC_LOG; write it like warn or codexec_gateway=debug");
    }
    let named = common.toolset.clone().or_else(|| env::toolset().map(|names| vec![names]));
    let mut named = named.iter().flatten().flat_map(|names| names.split(','));
    let has_bare = named.any(|name| name.trim() == Toolset::Codexec.name());
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

pub(crate) fn run(mut cli: Cli) -> anyhow::Result<ExitCode> {
    let filter = log_filter(&cli.common)?;
    // It would tell the codes of logins.
    let filter = filter.add_directive("rmcp::transport::auth=error".parse()?);
    // Standard output belongs to MCP.
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(async {
        let command = cli.command.unwrap_or(Command::Serve);
        if let Command::ConformanceClient { url } = &command {
            return conformance::run(url).await;
        }
        // Settings that are wrong are for this command to tell.
        if let Command::Migrate(args) = command {
            return migrate::run(args, &parts::place()?);
        }
        // An agent rather has most tools soon; a person who asks for a list wants it whole.
        let patience = match command {
            Command::Serve
            | Command::Exec(_)
            | Command::Code(_)
            | Command::Scripts(_)
            | Command::Logs(_)
            | Command::Sessions(_)
            | Command::Packages(_)
            | Command::Migrate(_)
            | Command::Doctor { .. } => Duration::from_secs(5),
            Command::Tools(_) | Command::Servers(_) | Command::ConformanceClient { .. } => {
                Duration::from_secs(60)
            }
        };
        let cache = match &command {
            Command::Tools(args) if args.wants_refresh() => CacheUse::Never,
            Command::Tools(_)
            | Command::Exec(_)
            | Command::Code(_)
            | Command::Scripts(_)
            | Command::Logs(_)
            | Command::Sessions(_)
            | Command::Packages(_) => CacheUse::Instead,
            Command::Serve
            | Command::Servers(_)
            | Command::Doctor { .. }
            | Command::Migrate(_)
            | Command::ConformanceClient { .. } => CacheUse::Meanwhile,
        };
        if matches!(command, Command::Code(_)) {
            // Whoever types it means that system, with its settings.
            cli.common.toolset = Some(vec![Toolset::Mcpproxy.name().to_owned()]);
        }
        let parts = Parts::read(&cli.common, patience, cache)?;
        match command {
            Command::Serve => serve::run(parts).await,
            Command::Exec(args) => exec::run(parts, args).await,
            Command::Code(args) => code::run(parts, args).await,
            Command::Scripts(args) => scripts::run(parts, args).await,
            Command::Logs(args) => logs::run(parts, args).await,
            Command::Sessions(args) => sessions::run(parts, args).await,
            Command::Packages(args) => packages::run(parts, args).await,
            Command::Tools(args) => tools::run(&parts, args).await,
            Command::Servers(args) => servers::run(parts, args).await,
            Command::ConformanceClient { url } => conformance::run(&url).await,
            Command::Migrate(args) => migrate::run(args, &parts::place()?),
            Command::Doctor { json } => doctor::run(&parts, json).await,
        }
    });
    // A disk that does not answer must not keep us: what has to be written is written.
    runtime.shutdown_background();
    done
}
