//! `codexec servers`, one file per thing it does.

mod approve;
mod edit;
mod list;
mod login;
mod logs;
mod restart;

pub(super) use list::why_waiting;

use std::process::ExitCode;

use crate::cli::Servers;
use crate::parts::Parts;

pub(super) async fn run(parts: Parts, args: Servers) -> anyhow::Result<ExitCode> {
    match args {
        Servers::List(args) => list::run(&parts, &args).await,
        Servers::Add(args) => edit::add(&parts, &args),
        Servers::Remove(args) => edit::remove(&parts, &args),
        Servers::Enable(args) => edit::enable(&parts, &args),
        Servers::Disable(args) => edit::disable(&parts, &args),
        Servers::Logs(args) => logs::run(&parts, &args),
        Servers::Restart(args) => restart::run(&parts, &args),
        Servers::Login(args) => login::run(&parts, &args).await,
        Servers::Approve(args) => approve::run(&parts, &args).await,
    }
}
