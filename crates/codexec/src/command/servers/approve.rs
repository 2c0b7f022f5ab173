use std::process::ExitCode;

use anyhow::bail;

use crate::cli::servers::Approve;
use crate::parts::Parts;

pub(super) async fn run(_: &Parts, _: &Approve) -> anyhow::Result<ExitCode> {
    bail!("not there yet")
}
