//! `codexec servers`, one module per subcommand.

mod approve;
mod edit;
mod import;
mod list;
mod login;
mod logs;
mod restart;

pub(super) use list::{ServerRow, list_rows};

use std::process::ExitCode;

use crate::cli::ServersCommand;
use crate::parts::Parts;

pub(super) async fn run(mut parts: Parts, args: ServersCommand) -> anyhow::Result<ExitCode> {
    match args {
        ServersCommand::List(args) => list::run(&parts, &args).await,
        ServersCommand::Add(args) => edit::add(&parts, &args),
        ServersCommand::Remove(args) => edit::remove(&parts, &args),
        ServersCommand::Enable(args) => edit::enable(&mut parts, &args),
        ServersCommand::Disable(args) => edit::disable(&parts, &args),
        ServersCommand::Import(args) => import::run(&mut parts, &args),
        ServersCommand::Logs(args) => logs::run(&parts, &args),
        ServersCommand::Restart(args) => restart::run(&parts, &args),
        ServersCommand::Login(args) => login::run(&parts, &args).await,
        ServersCommand::Approve(args) => approve::run(&parts, &args).await,
    }
}
