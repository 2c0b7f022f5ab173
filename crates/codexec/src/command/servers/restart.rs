use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use super::edit::known;
use crate::cli::servers::Name;
use crate::parts::Parts;
use crate::servers::ask_for_restart;

pub(super) fn run(parts: &Parts, args: &Name) -> anyhow::Result<ExitCode> {
    let name = known(parts, &args.name)?;
    ask_for_restart(&parts.home, &name)
        .with_context(|| format!("cannot write in {}", parts.home.display()))?;
    writeln!(std::io::stdout(), "every codexec that runs here is told to restart {name}")?;
    Ok(ExitCode::SUCCESS)
}
