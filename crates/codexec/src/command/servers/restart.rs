use std::process::ExitCode;

use anyhow::bail;

use crate::cli::servers::Name;
use crate::parts::Parts;

pub(super) fn run(_: &Parts, _: &Name) -> anyhow::Result<ExitCode> {
    bail!("not there yet")
}
