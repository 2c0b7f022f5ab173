use std::process::ExitCode;

use anyhow::bail;

use crate::cli::servers::{Add, Name};
use crate::parts::Parts;

pub(super) fn add(_: &Parts, _: &Add) -> anyhow::Result<ExitCode> {
    bail!("not there yet")
}

pub(super) fn remove(_: &Parts, _: &Name) -> anyhow::Result<ExitCode> {
    bail!("not there yet")
}

pub(super) fn enable(_: &Parts, _: &Name) -> anyhow::Result<ExitCode> {
    bail!("not there yet")
}

pub(super) fn disable(_: &Parts, _: &Name) -> anyhow::Result<ExitCode> {
    bail!("not there yet")
}
