use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use super::edit::resolve_server;
use crate::cli::servers::NameArgs;
use crate::parts::Parts;
use crate::server_files::ask_for_restart;

pub(super) fn run(parts: &Parts, args: &NameArgs) -> anyhow::Result<ExitCode> {
    let name = resolve_server(parts, &args.name)?;
    ask_for_restart(&parts.home, &name)
        .with_context(|| format!("cannot write in {}", parts.home.display()))?;
    writeln!(std::io::stdout(), "asked every running codexec to restart {name}")?;
    Ok(ExitCode::SUCCESS)
}
