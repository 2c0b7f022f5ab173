//! Which interpreter, and which of its tests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::step;

/// Fewer say little.
const FEWEST: usize = 200;

const PROBE: &str = "import os, sys, test
print(os.path.realpath(sys.executable)); print(os.path.dirname(test.__file__))";

/// Not run on either side.
const LEFT_OUT: &[&str] = &[];

pub(super) struct Interpreter {
    pub(super) program: PathBuf,
    tests: PathBuf,
}

impl Interpreter {
    /// The named one, or the first that has its tests with it: Debian's has only a few.
    pub(super) fn find(named: Option<&Path>) -> Result<Interpreter> {
        let usual = ["python3", "/usr/local/bin/python3", "/usr/bin/python3"].map(Path::new);
        let candidates = named.map_or_else(|| usual.to_vec(), |named| vec![named]);
        let found = candidates.iter().filter_map(|program| Interpreter::ask(program));
        let mut fit = found.filter(|found| found.all().is_ok_and(|all| all.len() >= FEWEST));
        fit.next().with_context(|| {
            format!(
                "no interpreter with at least {FEWEST} files of its own tests among {candidates:?}; \
                 name one with --interpreter"
            )
        })
    }

    fn ask(program: &Path) -> Option<Interpreter> {
        let probe = || {
            let mut command = step::command(program);
            command.args(["-c", PROBE]);
            command
        };
        if !step::works(&mut probe()) {
            return None;
        }
        let said = step::output(&mut probe()).ok()?;
        let mut lines = said.lines().map(PathBuf::from);
        Some(Interpreter { program: lines.next()?, tests: lines.next()? })
    }

    pub(super) fn modules(&self, only: &[String]) -> Result<Vec<String>> {
        let mut modules = self.all()?;
        modules.retain(|name| match only {
            [] => !LEFT_OUT.contains(&name.as_str()),
            only => only.contains(name),
        });
        if modules.is_empty() || (only.is_empty() && modules.len() < FEWEST) {
            bail!("{} test files are too few", modules.len());
        }
        Ok(modules)
    }

    fn all(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.tests)? {
            let path = entry?.path();
            let is_module = path.extension().is_some_and(|end| end == "py")
                || path.join("__init__.py").is_file();
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            if is_module && name.starts_with("test_") {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }
}
