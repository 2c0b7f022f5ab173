//! The two places in which a module of tests runs.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use super::{Folder, Interpreter};
use crate::{plain_user::is_root, step};

const PROGRAM: &str = include_str!("run_module.py");
const PATIENCE_S: u32 = 300;

/// How a module of tests ended in one place.
pub(super) enum Ran {
    Ended(Ends),
    Broken(String),
}

pub(super) struct Ends {
    pub(super) tests: u64,
    /// Only of those that did not pass.
    pub(super) ends: BTreeMap<String, End>,
}

/// The best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum End {
    Passes,
    IsSkipped,
    Fails,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            End::Passes => "passes",
            End::IsSkipped => "is skipped",
            End::Fails => "fails",
        })
    }
}

pub(super) struct Sides {
    codexec: PathBuf,
    interpreter: PathBuf,
    /// Holds the settings.
    folder: Folder,
}

impl Ends {
    pub(super) fn end_of(&self, test: &str) -> End {
        self.ends.get(test).copied().unwrap_or(End::Passes)
    }
}

impl Ran {
    pub(super) fn tests(&self) -> u64 {
        match self {
            Ran::Ended(ends) => ends.tests,
            Ran::Broken(_) => 0,
        }
    }

    pub(super) fn in_short(&self) -> String {
        match self {
            Ran::Ended(ends) => format!("{} tests", ends.tests),
            Ran::Broken(why) => format!("breaks ({why})"),
        }
    }

    fn read(value: &Value) -> Option<Ran> {
        let mut ends = BTreeMap::new();
        let lists = [("skipped", End::IsSkipped), ("failures", End::Fails), ("errors", End::Fails)];
        for (list, end) in lists {
            for name in value.get(list)?.as_array()? {
                ends.insert(name.as_str()?.to_owned(), end);
            }
        }
        Some(Ran::Ended(Ends { tests: value.get("tests")?.as_u64()?, ends }))
    }
}

impl Sides {
    pub(super) fn new(codexec: &Path, interpreter: &Interpreter) -> Result<Sides> {
        let folder = Folder::new("settings")?;
        let settings = format!(
            "[limits]\ntimeout-ms = {}\ncpu-s = 600\nmemory-mib = 2048\nprocesses = 512\n\
             disk-mib = 1024\ndisk-files = 100000\n\n[python]\ninterpreter = {:?}\npreload = []\n",
            PATIENCE_S * 1000,
            interpreter.program
        );
        fs::write(folder.0.join("config.toml"), settings)?;
        let (codexec, interpreter) = (codexec.to_owned(), interpreter.program.clone());
        Ok(Sides { codexec, interpreter, folder })
    }

    /// As a user without privileges.
    pub(super) fn plain(&self, module: &str) -> Ran {
        self.try_plain(module).unwrap_or_else(|err| Ran::Broken(format!("{err:#}")))
    }

    fn try_plain(&self, module: &str) -> Result<Ran> {
        let folder = Folder::new(module)?;
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
        command.args(["-k", "5", &PATIENCE_S.to_string()]);
        if is_root() {
            // An id of its own, and no capabilities; what only root can read stays readable.
            command.args(["unshare", "--user", "--map-user=1000", "--map-group=1000"]);
        }
        command.arg(&self.interpreter).arg("-B").arg("main.py").current_dir(&work);
        let status = quiet(&mut command, &home).env("TMPDIR", &folder.0).status()?;
        let text = fs::read_to_string(result).with_context(|| format!("ended with {status}"))?;
        Ran::read(&serde_json::from_str(&text)?).context("no result")
    }

    pub(super) fn guest(&self, module: &str) -> Ran {
        self.try_guest(module).unwrap_or_else(|err| Ran::Broken(format!("{err:#}")))
    }

    fn try_guest(&self, module: &str) -> Result<Ran> {
        let folder = Folder::new(module)?;
        let mut command = step::command(&self.codexec);
        command.args(["exec", "--language", "python", "--json", "--config"]);
        command.arg(self.folder.0.join("config.toml")).arg(format!("{PROGRAM}\n\nrun({module:?})"));
        command.current_dir(&folder.0);
        let output = quiet(&mut command, &folder.0).stdout(Stdio::piped()).output()?;
        let said: Value = serde_json::from_slice(&output.stdout).context("no JSON")?;
        let error = said.pointer("/error/message").and_then(Value::as_str).unwrap_or("no result");
        said.get("value").and_then(Ran::read).ok_or_else(|| anyhow!("{error}"))
    }
}

/// With nothing of ours but what a guest has too.
fn quiet<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command.env_clear().env("HOME", home).env("LANG", "C.UTF-8").env("TERM", "dumb");
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
