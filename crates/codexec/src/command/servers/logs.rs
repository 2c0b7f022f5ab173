use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use codexec_gateway::{TransportConfig, log_of};

use super::edit::known;
use crate::cli::servers::Logs;
use crate::parts::Parts;

pub(super) fn run(parts: &Parts, args: &Logs) -> anyhow::Result<ExitCode> {
    let name = known(parts, &args.name)?;
    let log = log_of(&parts.home, &name, args.lines);
    let log = log.with_context(|| format!("what {name} said cannot be read"))?;
    if log.is_empty() {
        let found = parts.found.servers.iter().find(|found| found.config.name == name);
        let is_remote =
            found.is_some_and(|found| matches!(found.config.transport, TransportConfig::Remote(_)));
        let why =
            if is_remote { "it is not a program of this machine" } else { "it has said nothing" };
        writeln!(std::io::stderr(), "there is no log of {name}: {why}")?;
    }
    write!(std::io::stdout(), "{log}")?;
    Ok(ExitCode::SUCCESS)
}
