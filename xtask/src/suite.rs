//! Runs CPython's own tests in a guest and outside, and compares the results. A difference is
//! either a limitation listed in docs/limitations.md with its reason, or a defect.

mod known_differences;
mod modules;
mod runner;

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context, Result, bail};

use crate::{step, workspace::Workspace};
use known_differences::KnownDifferences;
use modules::PythonInterpreter;
use runner::{ModuleResult, ModuleRunner};

struct SuiteOptions {
    jobs: usize,
    interpreter: Option<PathBuf>,
    /// Only these modules.
    only: Vec<String>,
}

/// A test that outcomes worse in a guest.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    test: String,
    plain: String,
    guest: String,
}

#[derive(Default)]
struct SuiteTotals {
    modules: usize,
    tests: u64,
    same: usize,
    differences: Vec<Difference>,
    /// Differences that did not occur in the second run.
    unsteady: Vec<Difference>,
    broken: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &[&str]) -> Result<()> {
    let options = SuiteOptions::parse(args)?;
    let known = KnownDifferences::read(&workspace.root.join("docs/limitations.md"))?;
    let interpreter = PythonInterpreter::find(options.interpreter.as_deref())?;
    let modules = interpreter.modules(&options.only)?;
    let mut build = step::cargo(&workspace.root);
    step::run(build.args(["build", "--quiet", "-p", "codexec"]))?;
    let runner = ModuleRunner::new(&workspace.target.join("debug/codexec"), &interpreter)?;
    let (program, count) = (interpreter.program.display(), modules.len());
    step::say(&format!("{count} test files of {program}, outside and inside a guest"));
    let totals = run_all(&runner, &modules, options.jobs);
    report(&totals, &known)
}

impl SuiteOptions {
    fn parse(args: &[&str]) -> Result<SuiteOptions> {
        let mut options = SuiteOptions { jobs: 2, interpreter: None, only: Vec::new() };
        let mut args = args.iter();
        while let Some(&arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} needs a value"));
            match arg {
                "--jobs" => {
                    options.jobs = value()?.parse().context("--jobs needs a number")?;
                }
                "--interpreter" => options.interpreter = Some(PathBuf::from(value()?)),
                name if name.starts_with("test_") => options.only.push(name.to_owned()),
                other => {
                    bail!("unknown argument {other:?}; use --jobs N, --interpreter P, test_name..")
                }
            }
        }
        options.jobs = options.jobs.clamp(1, 64);
        Ok(options)
    }
}

fn run_all(runner: &ModuleRunner, modules: &[String], jobs: usize) -> SuiteTotals {
    let totals = Mutex::new(SuiteTotals::default());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(module) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let comparison = compare(runner, module);
                    let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
                    totals.add(module, comparison);
                    if totals.modules.is_multiple_of(25) {
                        step::say(&format!("{} of {} files", totals.modules, modules.len()));
                    }
                }
            });
        }
    });
    totals.into_inner().unwrap_or_else(PoisonError::into_inner)
}

struct ModuleComparison {
    tests: u64,
    steady: BTreeSet<Difference>,
    unsteady: BTreeSet<Difference>,
    is_broken: bool,
}

/// Compares one module. Differences are checked by a second run, because some tests fail on a busy
/// machine.
fn compare(runner: &ModuleRunner, module: &str) -> ModuleComparison {
    let (plain, guest) = (runner.run_outside(module), runner.run_in_guest(module));
    let is_broken = matches!((&plain, &guest), (ModuleResult::Broken(_), ModuleResult::Broken(_)));
    let tests = plain.tests();
    let first = differences(module, &plain, &guest);
    if first.is_empty() {
        return ModuleComparison { tests, steady: first, unsteady: BTreeSet::new(), is_broken };
    }
    let second = differences(module, &runner.run_outside(module), &runner.run_in_guest(module));
    let steady: BTreeSet<Difference> = first.intersection(&second).cloned().collect();
    let unsteady = first.symmetric_difference(&second).cloned().collect();
    ModuleComparison { tests, steady, unsteady, is_broken }
}

fn differences(module: &str, plain: &ModuleResult, guest: &ModuleResult) -> BTreeSet<Difference> {
    let named = |test: &str, plain: String, guest: String| Difference {
        test: test.to_owned(),
        plain,
        guest,
    };
    let (outside, inside) = match (plain, guest) {
        (ModuleResult::Broken(_), ModuleResult::Broken(_)) => return BTreeSet::new(),
        (ModuleResult::Ended(outside), ModuleResult::Ended(inside)) => (outside, inside),
        (plain, guest) => return [named(module, plain.summary(), guest.summary())].into(),
    };
    let tests: BTreeSet<&String> = outside.outcomes.keys().chain(inside.outcomes.keys()).collect();
    let mut found: BTreeSet<Difference> = tests
        .into_iter()
        .map(|test| {
            named(test, outside.outcome_of(test).to_string(), inside.outcome_of(test).to_string())
        })
        .filter(|difference| {
            outside.outcome_of(&difference.test) < inside.outcome_of(&difference.test)
        })
        .collect();
    // A module that is skipped as a whole is reported under its own name.
    if found.is_empty() && outside.tests > inside.tests {
        found.insert(named(
            module,
            format!("{} tests", outside.tests),
            format!("{} tests", inside.tests),
        ));
    }
    found
}

impl SuiteTotals {
    fn add(&mut self, module: &str, comparison: ModuleComparison) {
        self.modules += 1;
        self.tests += comparison.tests;
        self.same += usize::from(comparison.steady.is_empty());
        if comparison.is_broken {
            self.broken.push(module.to_owned());
        }
        let (steady, unsteady) = (comparison.steady.len(), comparison.unsteady.len());
        if steady + unsteady > 0 {
            step::say(&format!("  {module}: {steady} differences, {unsteady} unsteady"));
        }
        self.differences.extend(comparison.steady);
        self.unsteady.extend(comparison.unsteady);
    }
}

fn report(totals: &SuiteTotals, known: &KnownDifferences) -> Result<()> {
    let mut unknown = 0;
    let mut sorted: Vec<&Difference> = totals.differences.iter().collect();
    sorted.sort();
    for Difference { test, plain, guest } in sorted {
        let why = known.reason(test).unwrap_or_else(|| {
            unknown += 1;
            "NOT LISTED"
        });
        step::say(&format!("{test}\n    outside {plain}, in a guest {guest}: {why}"));
    }
    for Difference { test, plain, guest } in &totals.unsteady {
        step::say(&format!("unsteady: {test}: outside {plain}, in a guest {guest}"));
    }
    for module in &totals.broken {
        step::say(&format!("runs neither in a guest nor outside: {module}"));
    }
    let SuiteTotals { modules, tests, same, differences, .. } = totals;
    step::say(&format!(
        "{modules} files, {tests} tests; {same} files end the same in a guest; {} tests differ, \
         {unknown} of them not listed",
        differences.len()
    ));
    if unknown > 0 {
        bail!("list intended differences, with their reason, in docs/limitations.md; fix the rest");
    }
    Ok(())
}

/// A temporary folder, removed on drop.
struct TempFolder(PathBuf);

impl TempFolder {
    fn new(name: &str) -> Result<TempFolder> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("codexec-suite-{}-{number}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(TempFolder(path))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
