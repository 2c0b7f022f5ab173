//! CPython's own tests, in a guest and outside of one. What differs is a limitation, written down
//! with its reason in docs/limitations.md, or a defect.

mod known;
mod modules;
mod side;

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
use known::Known;
use modules::Interpreter;
use side::{Ran, Sides};

struct Options {
    jobs: usize,
    interpreter: Option<PathBuf>,
    /// Only these modules.
    only: Vec<String>,
}

/// A test that ends worse in a guest.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    test: String,
    plain: String,
    guest: String,
}

#[derive(Default)]
struct Totals {
    modules: usize,
    tests: u64,
    same: usize,
    differences: Vec<Difference>,
    /// Seen once and not again.
    unsteady: Vec<Difference>,
    broken: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &[&str]) -> Result<()> {
    let options = Options::read(args)?;
    let known = Known::read(&workspace.root.join("docs/limitations.md"))?;
    let interpreter = Interpreter::find(options.interpreter.as_deref())?;
    let modules = interpreter.modules(&options.only)?;
    let mut build = step::cargo(&workspace.root);
    step::run(build.args(["build", "--quiet", "-p", "codexec"]))?;
    let sides = Sides::new(&workspace.target.join("debug/codexec"), &interpreter)?;
    let (program, count) = (interpreter.program.display(), modules.len());
    step::say(&format!("{count} test files of {program}, outside and inside a guest"));
    let totals = all(&sides, &modules, options.jobs);
    tell(&totals, &known)
}

impl Options {
    fn read(args: &[&str]) -> Result<Options> {
        let mut options = Options { jobs: 2, interpreter: None, only: Vec::new() };
        let mut args = args.iter();
        while let Some(&arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} wants a value"));
            match arg {
                "--jobs" => {
                    options.jobs = value()?.parse().context("--jobs wants a number")?;
                }
                "--interpreter" => options.interpreter = Some(PathBuf::from(value()?)),
                name if name.starts_with("test_") => options.only.push(name.to_owned()),
                other => bail!("{other:?} is not known; --jobs N, --interpreter P, test_name.."),
            }
        }
        options.jobs = options.jobs.clamp(1, 64);
        Ok(options)
    }
}

fn all(sides: &Sides, modules: &[String], jobs: usize) -> Totals {
    let totals = Mutex::new(Totals::default());
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(module) = modules.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ran = compare(sides, module);
                    let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
                    totals.add(module, ran);
                    if totals.modules.is_multiple_of(25) {
                        step::say(&format!("{} of {} files", totals.modules, modules.len()));
                    }
                }
            });
        }
    });
    totals.into_inner().unwrap_or_else(PoisonError::into_inner)
}

struct Compared {
    tests: u64,
    steady: BTreeSet<Difference>,
    unsteady: BTreeSet<Difference>,
    is_broken: bool,
}

/// What differs is looked at once more: a busy machine makes some tests fail anywhere.
fn compare(sides: &Sides, module: &str) -> Compared {
    let (plain, guest) = (sides.plain(module), sides.guest(module));
    let is_broken = matches!((&plain, &guest), (Ran::Broken(_), Ran::Broken(_)));
    let tests = plain.tests();
    let first = differences(module, &plain, &guest);
    if first.is_empty() {
        return Compared { tests, steady: first, unsteady: BTreeSet::new(), is_broken };
    }
    let second = differences(module, &sides.plain(module), &sides.guest(module));
    let steady: BTreeSet<Difference> = first.intersection(&second).cloned().collect();
    let unsteady = first.symmetric_difference(&second).cloned().collect();
    Compared { tests, steady, unsteady, is_broken }
}

fn differences(module: &str, plain: &Ran, guest: &Ran) -> BTreeSet<Difference> {
    let named = |test: &str, plain: String, guest: String| Difference {
        test: test.to_owned(),
        plain,
        guest,
    };
    let (here, there) = match (plain, guest) {
        (Ran::Broken(_), Ran::Broken(_)) => return BTreeSet::new(),
        (Ran::Ended(here), Ran::Ended(there)) => (here, there),
        (plain, guest) => return [named(module, plain.in_short(), guest.in_short())].into(),
    };
    let tests: BTreeSet<&String> = here.ends.keys().chain(there.ends.keys()).collect();
    let mut found: BTreeSet<Difference> = tests
        .into_iter()
        .map(|test| named(test, here.end_of(test).to_string(), there.end_of(test).to_string()))
        .filter(|difference| here.end_of(&difference.test) < there.end_of(&difference.test))
        .collect();
    // A whole module can be skipped, and that is told under its own name.
    if found.is_empty() && here.tests > there.tests {
        found.insert(named(
            module,
            format!("{} tests", here.tests),
            format!("{} tests", there.tests),
        ));
    }
    found
}

impl Totals {
    fn add(&mut self, module: &str, ran: Compared) {
        self.modules += 1;
        self.tests += ran.tests;
        self.same += usize::from(ran.steady.is_empty());
        if ran.is_broken {
            self.broken.push(module.to_owned());
        }
        let (steady, unsteady) = (ran.steady.len(), ran.unsteady.len());
        if steady + unsteady > 0 {
            step::say(&format!("  {module}: {steady} differences, {unsteady} unsteady"));
        }
        self.differences.extend(ran.steady);
        self.unsteady.extend(ran.unsteady);
    }
}

fn tell(totals: &Totals, known: &Known) -> Result<()> {
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
        step::say(&format!("runs nowhere: {module}"));
    }
    let Totals { modules, tests, same, differences, .. } = totals;
    step::say(&format!(
        "{modules} files, {tests} tests; {same} files end the same in a guest; {} tests differ, \
         {unknown} of them not listed",
        differences.len()
    ));
    if unknown > 0 {
        bail!("list what is on purpose, with its reason, in docs/limitations.md; mend the rest");
    }
    Ok(())
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Folder> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("codexec-suite-{}-{number}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
