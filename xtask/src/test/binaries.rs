//! Builds the tests and benchmarks in one profile, with one call of cargo, and runs all but the
//! integration tests.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::step::{cargo, command, output, run, say};

/// The programs that cargo has built.
pub(crate) struct TestBinaries {
    pub(crate) codexec: PathBuf,
    pub(crate) integration: TestBinary,
    units: Vec<TestBinary>,
    benches: Vec<TestBinary>,
}

pub(crate) struct TestBinary {
    /// The folder of the target's package, and the target's name.
    name: String,
    pub(crate) path: PathBuf,
    /// The package's folder, where its tests expect to run.
    folder: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Benches {
    Build,
    Skip,
}

impl TestBinaries {
    pub(crate) fn build(root: &Path, benches: Benches) -> Result<TestBinaries> {
        let mut build = cargo(root);
        build.args(["test", "--workspace", "--no-run"]);
        build.args(["--message-format", "json-render-diagnostics"]);
        if benches == Benches::Build {
            build.arg("--all-targets");
        }
        let messages = output(&mut build)?;
        let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
        let (mut codexec, mut integration) = (None, None);
        let (mut units, mut benches) = (Vec::new(), Vec::new());
        for message in messages {
            let message: Value = message;
            let Some((kind, is_test, binary)) = read_artifact(&message) else { continue };
            match (kind, is_test) {
                ("bench", _) => benches.push(binary),
                ("test", _) if binary.name == "codexec it" => integration = Some(binary),
                (_, true) => units.push(binary),
                ("bin", false) if binary.name == "codexec codexec" => codexec = Some(binary.path),
                (_, false) => {}
            }
        }
        units.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(TestBinaries {
            codexec: codexec.context("cargo built no binary `codexec`")?,
            integration: integration.context("cargo built no test `it`")?,
            units,
            benches,
        })
    }

    /// Runs the tests beside the code. Their output is libtest's own.
    pub(crate) fn run_unit_tests(&self, filter: &str) -> Result<()> {
        run_each("unit tests", &self.units, |tests| {
            // A test whose tool is missing must fail.
            run(tests.command().arg(filter).env("CODEXEC_REQUIRE_ALL", "1"))
        })
    }

    pub(crate) fn has_benches(&self) -> bool {
        !self.benches.is_empty()
    }

    /// Runs every benchmark in the fewest rounds, only to see that it works.
    pub(crate) fn run_benches(&self, world: &Path) -> Result<()> {
        run_each("benchmark", &self.benches, |bench| {
            run(bench.command().arg("--test").env("CODEXEC_WORLD", world))
        })
    }
}

impl TestBinary {
    /// Returns a command that starts the binary as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut command = command(&self.path);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Runs every binary, also after a failure.
fn run_each(
    what: &str,
    binaries: &[TestBinary],
    run: impl Fn(&TestBinary) -> Result<()>,
) -> Result<()> {
    let fails = |binary: &&TestBinary| {
        say(&format!("-- {what}: {}", binary.name));
        run(binary).inspect_err(|err| say(&format!("error: {err:#}"))).is_err()
    };
    let failed: Vec<&str> =
        binaries.iter().filter(fails).map(|binary| binary.name.as_str()).collect();
    if failed.is_empty() { Ok(()) } else { bail!("{what} failed: {}", failed.join(", ")) }
}

/// Reads the kind of a target, whether its profile is for tests, and its program from a message
/// of cargo.
fn read_artifact(message: &Value) -> Option<(&str, bool, TestBinary)> {
    let path = message.get("executable")?.as_str()?;
    let kind = message.pointer("/target/kind/0")?.as_str()?;
    let is_test = message.pointer("/profile/test")?.as_bool()?;
    let target = message.pointer("/target/name")?.as_str()?;
    let manifest = Path::new(message.get("manifest_path")?.as_str()?);
    let folder = manifest.parent()?.to_owned();
    let package = folder.file_name()?.to_string_lossy();
    let name = format!("{package} {target}");
    Some((kind, is_test, TestBinary { name, path: path.into(), folder }))
}
