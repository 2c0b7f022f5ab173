use std::process::ExitCode;

use anyhow::bail;

use crate::cli::servers::Logs;
use crate::parts::Parts;

pub(super) fn run(_: &Parts, _: &Logs) -> anyhow::Result<ExitCode> {
    bail!("not there yet")
}
