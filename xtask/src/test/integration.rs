//! Runs the integration tests: each in its own process, several side by side, as both users.
//!
//! A process for each test shows the time of each, lets all others run when one crashes, and allows
//! tests of both users in one queue.

use std::{
    path::Path,
    process::Command,
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use super::{
    binaries::{TestBinaries, TestBinary},
    rules,
    test_process::{self, TestEnd},
    unprivileged_user::{UnprivilegedUser, is_root},
};
use crate::{
    report::seconds,
    step::{output, print, say},
};

/// Tests mostly wait, so more of them than cores run side by side.
const TESTS_PER_CORE: usize = 2;
const SLOWEST: usize = 10;

pub(crate) struct IntegrationTests<'a> {
    root: &'a Path,
    world: &'a Path,
    binary: &'a TestBinary,
    /// Only root can run tests as somebody else.
    unprivileged: Option<UnprivilegedUser>,
    side_by_side: Vec<TestRun>,
    alone: Vec<TestRun>,
}

/// A test to be run as one user.
#[derive(Clone)]
struct TestRun {
    name: String,
    user: TestUser,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum TestUser {
    Current,
    Unprivileged,
}

pub(crate) struct TestResult {
    run: TestRun,
    end: TestEnd,
}

impl<'a> IntegrationTests<'a> {
    /// Lists the tests whose names contain `filter`, and copies the programs for the unprivileged
    /// user.
    pub(crate) fn prepare(
        root: &'a Path,
        built: &'a TestBinaries,
        world: &'a Path,
        filter: &str,
    ) -> Result<IntegrationTests<'a>> {
        let binary = &built.integration;
        let list = output(binary.command().args(["--list", "--format", "terse"]))?;
        let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
        let mut names: Vec<&str> = names.collect();
        let unused = rules::find_unused(&names);
        if !unused.is_empty() {
            bail!("xtask/src/test/rules.rs names no test: {}", unused.join(", "));
        }
        names.retain(|name| name.contains(filter));
        let unprivileged = if is_root() { Some(UnprivilegedUser::prepare(built)?) } else { None };
        let mut runs = Vec::new();
        for user in [TestUser::Unprivileged, TestUser::Current] {
            let runs_as = |name: &&&str| match user {
                TestUser::Unprivileged => unprivileged.is_some(),
                TestUser::Current => unprivileged.is_none() || !rules::is_for_one_user(name),
            };
            let names = names.iter().filter(runs_as);
            runs.extend(names.map(|name| TestRun { name: (*name).to_owned(), user }));
        }
        runs.sort_by_key(|run| !rules::starts_first(&run.name));
        let (alone, side_by_side) = runs.into_iter().partition(|run| rules::runs_alone(&run.name));
        Ok(IntegrationTests { root, world, binary, unprivileged, side_by_side, alone })
    }

    pub(crate) fn run_side_by_side(&self, results: &mut Vec<TestResult>) -> Result<()> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        self.run_queue(&self.side_by_side, cores * TESTS_PER_CORE, results)
    }

    pub(crate) fn run_alone(&self, results: &mut Vec<TestResult>) -> Result<()> {
        self.run_queue(&self.alone, 1, results)
    }

    fn run_queue(
        &self,
        runs: &[TestRun],
        threads: usize,
        results: &mut Vec<TestResult>,
    ) -> Result<()> {
        let queue = Mutex::new(runs.iter());
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || -> Result<Vec<TestResult>> {
            let mut results = Vec::new();
            while let Some(run) = next() {
                results.push(self.run_one(run)?);
            }
            Ok(results)
        };
        let finished: Vec<Result<Vec<TestResult>>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| bail!("a thread panicked"))
            };
            threads.into_iter().map(join).collect()
        });
        let mut failed = 0;
        for more in finished {
            let more = more?;
            failed += more.iter().filter(|result| !result.end.is_ok).count();
            results.extend(more);
        }
        if failed > 0 {
            bail!("{failed} of {} tests failed", runs.len());
        }
        Ok(())
    }

    fn run_one(&self, run: &TestRun) -> Result<TestResult> {
        let mut command = self.command(run.user)?;
        command.args(["--exact", &run.name, "--test-threads", "1"]);
        command.env("CODEXEC_WORLD", self.world).env("CODEXEC_REQUIRE_ALL", "1");
        // Snapshots are compared, never changed, and cargo is not called to find them.
        command.env("INSTA_UPDATE", "no").env("INSTA_WORKSPACE_ROOT", self.root);
        command.env("RUST_BACKTRACE", "1");
        let end = test_process::run(&mut command)?;
        let verdict = if end.is_ok { "ok" } else { "FAILED" };
        let (name, user) = (&run.name, run.user.describe());
        let mut text = format!("test {name} ... {verdict} ({user}, {})", seconds(end.duration));
        if !end.is_ok {
            text.push_str(&format!("\n{}\n", end.output.trim()));
        }
        print(&text);
        Ok(TestResult { run: run.clone(), end })
    }

    fn command(&self, user: TestUser) -> Result<Command> {
        match user {
            TestUser::Current => Ok(self.binary.command()),
            TestUser::Unprivileged => {
                let unprivileged = self.unprivileged.as_ref();
                Ok(unprivileged.context("there is no unprivileged user")?.command())
            }
        }
    }
}

impl TestUser {
    fn describe(self) -> &'static str {
        match self {
            TestUser::Current if is_root() => "root",
            TestUser::Current => "you",
            TestUser::Unprivileged => "unprivileged",
        }
    }
}

/// Prints the names of the failed tests, and the slowest tests.
pub(crate) fn print_failures_and_slowest(results: &[TestResult]) {
    let mut slowest: Vec<&TestResult> = results.iter().collect();
    slowest.sort_by_key(|result| std::cmp::Reverse(result.end.duration));
    say(&format!("== the slowest {SLOWEST} tests"));
    for TestResult { run, end } in slowest.into_iter().take(SLOWEST) {
        let TestRun { name, user } = run;
        say(&format!("{:>10}  {name} ({})", seconds(end.duration), user.describe()));
    }
    for TestResult { run, .. } in results.iter().filter(|result| !result.end.is_ok) {
        say(&format!("FAILED: {} ({})", run.name, run.user.describe()));
    }
}

/// Prints a line in the format of libtest for each user.
pub(crate) fn print_totals(results: &[TestResult]) {
    for user in [TestUser::Unprivileged, TestUser::Current] {
        let ends =
            results.iter().filter(|result| result.run.user == user).map(|result| &result.end);
        let (mut passed, mut failed, mut took) = (0, 0, Duration::ZERO);
        for end in ends {
            *(if end.is_ok { &mut passed } else { &mut failed }) += 1;
            took += end.duration;
        }
        if passed + failed == 0 {
            continue;
        }
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        say(&format!("-- integration tests as {}", user.describe()));
        print(&format!(
            "test result: {verdict}. {passed} passed; {failed} failed; 0 ignored; 0 measured; \
             0 filtered out; finished in {:.2}s",
            took.as_secs_f64()
        ));
    }
}
