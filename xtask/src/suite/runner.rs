//! Runs a module of tests in a guest or outside.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use super::{PythonInterpreter, TempFolder};
use crate::{step, test::is_root};

const PROGRAM: &str = include_str!("run_module.py");
const TIMEOUT_S: u32 = 300;

/// The result of one module of tests, in a guest or outside.
pub(super) enum ModuleResult {
    Ended(TestOutcomes),
    Broken(String),
}

pub(super) struct TestOutcomes {
    pub(super) tests: u64,
    /// The tests that did not pass.
    pub(super) outcomes: BTreeMap<String, TestOutcome>,
}

/// The outcome of one test, ordered from best to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TestOutcome {
    Passed,
    Skipped,
    Failed,
}

impl fmt::Display for TestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TestOutcome::Passed => "passes",
            TestOutcome::Skipped => "is skipped",
            TestOutcome::Failed => "fails",
        })
    }
}

pub(super) struct ModuleRunner {
    codexec: PathBuf,
    interpreter: PathBuf,
    /// The folder with codexec's settings.
    folder: TempFolder,
}

impl TestOutcomes {
    pub(super) fn outcome_of(&self, test: &str) -> TestOutcome {
        self.outcomes.get(test).copied().unwrap_or(TestOutcome::Passed)
    }
}

impl ModuleResult {
    pub(super) fn tests(&self) -> u64 {
        match self {
            ModuleResult::Ended(outcomes) => outcomes.tests,
            ModuleResult::Broken(_) => 0,
        }
    }

    pub(super) fn summary(&self) -> String {
        match self {
            ModuleResult::Ended(outcomes) => format!("{} tests", outcomes.tests),
            ModuleResult::Broken(why) => format!("breaks ({why})"),
        }
    }

    fn read(value: &Value) -> Option<ModuleResult> {
        let mut outcomes = BTreeMap::new();
        let lists = [
            ("skipped", TestOutcome::Skipped),
            ("failures", TestOutcome::Failed),
            ("errors", TestOutcome::Failed),
        ];
        for (list, end) in lists {
            for name in value.get(list)?.as_array()? {
                outcomes.insert(name.as_str()?.to_owned(), end);
            }
        }
        Some(ModuleResult::Ended(TestOutcomes { tests: value.get("tests")?.as_u64()?, outcomes }))
    }
}

impl ModuleRunner {
    pub(super) fn new(codexec: &Path, interpreter: &PythonInterpreter) -> Result<ModuleRunner> {
        let folder = TempFolder::new("settings")?;
        let settings = format!(
            "[limits]\ntimeout-ms = {}\ncpu-s = 600\nmemory-mib = 2048\nprocesses = 512\n\
             disk-mib = 1024\ndisk-files = 100000\n\n[python]\ninterpreter = {:?}\npreload = []\n",
            TIMEOUT_S * 1000,
            interpreter.program
        );
        fs::write(folder.0.join("config.toml"), settings)?;
        let (codexec, interpreter) = (codexec.to_owned(), interpreter.program.clone());
        Ok(ModuleRunner { codexec, interpreter, folder })
    }

    /// Runs a module outside a guest, as an unprivileged user.
    pub(super) fn run_outside(&self, module: &str) -> ModuleResult {
        self.try_outside(module).unwrap_or_else(|err| ModuleResult::Broken(format!("{err:#}")))
    }

    fn try_outside(&self, module: &str) -> Result<ModuleResult> {
        let folder = TempFolder::new(module)?;
        let (home, work, result) =
            (folder.0.join("home"), folder.0.join("work"), folder.0.join("result"));
        fs::create_dir(&home)?;
        fs::create_dir(&work)?;
        let program = work.join("main.py");
        let end = format!(
            "import json\nended = json.dumps(run({module:?}))\n\
             with open({result:?}, 'w') as file:\n    file.write(ended)\n"
        );
        fs::write(&program, format!("{PROGRAM}\n\n{end}"))?;
        let mut command = step::command("timeout");
        command.args(["-k", "5", &TIMEOUT_S.to_string()]);
        if is_root() {
            // Drops root's id and capabilities, but keeps files readable that only root can read.
            command.args(["unshare", "--user", "--map-user=1000", "--map-group=1000"]);
        }
        command.arg(&self.interpreter).arg("-B").arg("main.py").current_dir(&work);
        let status = quiet(&mut command, &home).env("TMPDIR", &folder.0).status()?;
        let text = fs::read_to_string(result).with_context(|| format!("ended with {status}"))?;
        ModuleResult::read(&serde_json::from_str(&text)?).context("no result")
    }

    pub(super) fn run_in_guest(&self, module: &str) -> ModuleResult {
        self.try_guest(module).unwrap_or_else(|err| ModuleResult::Broken(format!("{err:#}")))
    }

    fn try_guest(&self, module: &str) -> Result<ModuleResult> {
        let folder = TempFolder::new(module)?;
        let mut command = step::command(&self.codexec);
        command.args(["exec", "--language", "python", "--json", "--config"]);
        command.arg(self.folder.0.join("config.toml")).arg(format!("{PROGRAM}\n\nrun({module:?})"));
        command.current_dir(&folder.0);
        let output = quiet(&mut command, &folder.0).stdout(Stdio::piped()).output()?;
        let said: Value = serde_json::from_slice(&output.stdout).context("no JSON")?;
        let error = said.pointer("/error/message").and_then(Value::as_str).unwrap_or("no result");
        said.get("value").and_then(ModuleResult::read).ok_or_else(|| anyhow!("{error}"))
    }
}

/// Gives a command the same environment that a guest has, and discards its output.
fn quiet<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command.env_clear().env("HOME", home).env("LANG", "C.UTF-8").env("TERM", "dumb");
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
