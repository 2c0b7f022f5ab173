//! One file per command.

mod code;
mod conformance;
mod doctor;
mod exec;
mod given;
mod logs;
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

use anyhow::Context as _;
use codexec_gateway::CacheUse;
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command};
use crate::env;
use crate::parts::Parts;

pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let filter = EnvFilter::try_new(env::log_filter())
        .context("CODEXEC_LOG; write it like warn or codexec_gateway=debug")?;
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
        // An agent rather has most tools soon; a person who asks for a list wants it whole.
        let patience = match command {
            Command::Serve
            | Command::Exec(_)
            | Command::Code(_)
            | Command::Scripts(_)
            | Command::Logs(_)
            | Command::Sessions(_)
            | Command::Packages(_)
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
            | Command::ConformanceClient { .. } => CacheUse::Meanwhile,
        };
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
            Command::Doctor { json } => doctor::run(&parts, json).await,
        }
    });
    // A disk that does not answer must not keep us: what has to be written is written.
    runtime.shutdown_background();
    done
}
