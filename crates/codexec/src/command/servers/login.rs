use std::process::ExitCode;

use anyhow::bail;

use crate::cli::servers::Login;
use crate::parts::Parts;

pub(super) async fn run(_: &Parts, _: &Login) -> anyhow::Result<ExitCode> {
    bail!("not there yet")
}
