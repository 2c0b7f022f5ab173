//! `cargo xtask check` and `cargo xtask test`: what CI runs.
//!
//! Every step runs, whatever failed before, unless it needs the result of a failed step.

mod binaries;
mod integration;
mod rules;
mod test_process;
mod unprivileged_user;

use std::{path::Path, thread};

use anyhow::Result;

use crate::{
    report::Report,
    step::{cargo, run, say, works},
    tidy,
    workspace::Workspace,
    world,
};
use binaries::{Benches, TestBinaries};
use integration::IntegrationTests;

pub(crate) use unprivileged_user::{is_root, is_world_readable};

/// Runs everything except the tests.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let report = Report::new();
    run_checks(workspace, &report);
    report.finish()
}

fn run_checks(workspace: &Workspace, report: &Report) {
    let root = &workspace.root;
    if works(cargo(root).args(["fmt", "--version"])) {
        report.step("format", || run(cargo(root).args(["fmt", "--all", "--check"])));
    } else {
        say("== format: skipped, rustfmt is not installed");
    }
    report.step("tidy", || tidy::run(workspace));
    if works(cargo(root).args(["clippy", "--version"])) {
        let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        report.step("clippy", || run(cargo(root).args(clippy)));
    } else {
        say("== clippy: skipped, it is not installed");
    }
}

/// Runs everything. The world is installed while the compiler works.
pub(crate) fn run_all(workspace: &Workspace) -> Result<()> {
    let report = Report::new();
    let root = &workspace.root;
    let (world, built) = thread::scope(|scope| {
        let world = scope.spawn(|| report.step("world", || world::install(workspace)));
        run_checks(workspace, &report);
        let built = report.step("build", || TestBinaries::build(root, Benches::Build));
        (world.join().ok().flatten(), built)
    });
    run_tests(root, &report, world.as_deref(), built, "")
}

/// Runs only the tests whose names contain `filter`.
pub(crate) fn run_filtered(workspace: &Workspace, filter: &str) -> Result<()> {
    let report = Report::new();
    let root = &workspace.root;
    let world = report.step("world", || world::install(workspace));
    let built = report.step("build", || TestBinaries::build(root, Benches::Skip));
    run_tests(root, &report, world.as_deref(), built, filter)
}

fn run_tests(
    root: &Path,
    report: &Report,
    world: Option<&Path>,
    built: Option<TestBinaries>,
    filter: &str,
) -> Result<()> {
    let Some(built) = built else { return report.finish() };
    report.step("unit tests", || built.run_unit_tests(filter));
    // Every integration test and benchmark uses the world.
    let Some(world) = world else { return report.finish() };
    if built.has_benches() {
        report.step("benches, each once", || built.run_benches(world));
    }
    let tests = report.step("list of integration tests", || {
        IntegrationTests::prepare(root, &built, world, filter)
    });
    let Some(tests) = tests else { return report.finish() };
    let mut results = Vec::new();
    report.step("integration tests, side by side", || tests.run_side_by_side(&mut results));
    report.step("integration tests, one at a time", || tests.run_alone(&mut results));
    integration::print_failures_and_slowest(&results);
    let finished = report.finish();
    // The last lines are in the format of libtest, because CI reads them.
    integration::print_totals(&results);
    finished
}
