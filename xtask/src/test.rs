//! CI, and what everybody runs before they push.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{
    plain_user::{self, Built},
    step::{cargo, last_step, output, run, say, step, works},
    tidy,
    workspace::Workspace,
    world,
};

/// Everything but the tests.
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

pub(crate) fn all(workspace: &Workspace) -> Result<()> {
    let world = step("world", || world::install(workspace))?;
    check(workspace)?;
    if workspace.has_benches() {
        let smoke = ["test", "--workspace", "--bench", "*", "--", "--test"];
        let mut bench = cargo(&workspace.root);
        bench.args(smoke).env("CODEXEC_WORLD", &world);
        step("benches, each once", || run(&mut bench))?;
    }
    tests(workspace, &world, None)
}

pub(crate) fn some(workspace: &Workspace, filter: &str) -> Result<()> {
    let world = step("world", || world::install(workspace))?;
    tests(workspace, &world, Some(filter))
}

fn tests(workspace: &Workspace, world: &Path, filter: Option<&str>) -> Result<()> {
    let root = &workspace.root;
    let built = step("build", || build(root))?;
    let as_ourselves = || {
        let mut tests = cargo(root);
        tests.args(["test", "--workspace"]).args(filter);
        // A test whose tool is missing fails here: the world was just installed.
        run(tests.env("CODEXEC_WORLD", world).env("CODEXEC_REQUIRE_ALL", "1"))
    };
    if plain_user::is_root() {
        step("tests as root", as_ourselves)?;
        last_step("tests as a plain user", || plain_user::test(root, &built, world, filter))
    } else {
        last_step("tests (as root they also run as a plain user)", as_ourselves)
    }
}

fn build(root: &Path) -> Result<Built> {
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
    Ok(Built { it: program("test", "it")?.into(), codexec: program("bin", "codexec")?.into() })
}
