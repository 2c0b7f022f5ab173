use std::process::ExitCode;

use anyhow::bail;

use crate::cli::servers::List;
use crate::parts::Parts;

pub(super) async fn run(_: &Parts, _: &List) -> anyhow::Result<ExitCode> {
    bail!("not there yet")
}
