//! One file per command.

mod doctor;
mod exec;
mod serve;
mod tools;

use std::process::ExitCode;

use anyhow::Context as _;
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command};
use crate::env;
use crate::parts::Parts;

pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let filter = EnvFilter::try_new(env::log_filter())
        .context("CODEXEC_LOG; write it like warn or codexec_gateway=debug")?;
    // Standard output belongs to MCP.
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let parts = Parts::read(&cli.common)?;
        match cli.command.unwrap_or(Command::Serve) {
            Command::Serve => serve::run(parts).await,
            Command::Exec(args) => exec::run(parts, args).await,
            Command::Tools(args) => tools::run(&parts, args).await,
            Command::Doctor { json } => doctor::run(&parts, json).await,
        }
    })
}
