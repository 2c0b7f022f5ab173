//! `cargo xtask check` and `cargo xtask test`: what CI runs.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{
    step::{cargo, last_step, output, run, say, step, works},
    tidy,
    unprivileged_user::{self, TestBinaries},
    workspace::Workspace,
    world,
};

/// Runs everything except the tests.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let root = &workspace.root;
    if works(cargo(root).args(["fmt", "--version"])) {
        step("format", || run(cargo(root).args(["fmt", "--all", "--check"])))?;
    } else {
        say("== format: skipped, rustfmt is not installed");
    }
    if works(cargo(root).args(["clippy", "--version"])) {
        let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        step("clippy", || run(cargo(root).args(clippy)))?;
    } else {
        say("== clippy: skipped, it is not installed");
    }
    step("tidy", || tidy::run(workspace))
}

pub(crate) fn run_all(workspace: &Workspace) -> Result<()> {
    let world = step("world", || world::install(workspace))?;
    check(workspace)?;
    if workspace.has_benches() {
        let smoke = ["test", "--workspace", "--bench", "*", "--", "--test"];
        let mut bench = cargo(&workspace.root);
        bench.args(smoke).env("CODEXEC_WORLD", &world);
        step("benches, each once", || run(&mut bench))?;
    }
    run_tests(workspace, &world, None)
}

pub(crate) fn run_filtered(workspace: &Workspace, filter: &str) -> Result<()> {
    let world = step("world", || world::install(workspace))?;
    run_tests(workspace, &world, Some(filter))
}

fn run_tests(workspace: &Workspace, world: &Path, filter: Option<&str>) -> Result<()> {
    let root = &workspace.root;
    let built = step("build", || build(root))?;
    let as_current_user = || {
        let mut tests = cargo(root);
        tests.args(["test", "--workspace"]).args(filter);
        // A test whose tool is missing must fail: all tools were just installed.
        run(tests.env("CODEXEC_WORLD", world).env("CODEXEC_REQUIRE_ALL", "1"))
    };
    if unprivileged_user::is_root() {
        step("tests as root", as_current_user)?;
        last_step("tests as an unprivileged user", || {
            unprivileged_user::test(root, &built, world, filter)
        })
    } else {
        last_step("tests (root also runs them as an unprivileged user)", as_current_user)
    }
}

fn build(root: &Path) -> Result<TestBinaries> {
    let mut build = cargo(root);
    build.args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]);
    let messages = output(&mut build)?;
    let messages: Vec<Value> =
        messages.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let program = |kind: &str, name: &str| {
        let found = messages.iter().find_map(|message| {
            let is_it = message.pointer("/target/kind/0")? == kind
                && message.pointer("/target/name")? == name
                && message.pointer("/profile/test")? == (kind == "test");
            if is_it { message.get("executable")?.as_str() } else { None }
        });
        found.with_context(|| format!("cargo built no {kind} target `{name}`"))
    };
    Ok(TestBinaries {
        it: program("test", "it")?.into(),
        codexec: program("bin", "codexec")?.into(),
    })
}
