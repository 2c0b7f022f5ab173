//! Programs that take packages or modules from the directory they are started in.

use std::path::Path;

use super::{Planner, StartRefusal, command_line::CommandLine};
use crate::config::{is_code, is_interpreter, program_name};

/// Programs that run what their working directory says, and that cannot be told otherwise, beside
/// those whose arguments cannot be told from code.
const RUNNERS: [&str; 14] = [
    "R", "Rscript", "bun", "bunx", "deno", "go", "lua", "luajit", "pnpm", "pnpx", "ts-node", "tsx",
    "yarn", "yarnpkg",
];
/// What follows these is resolved from the working directory.
const NODE_OPTIONS: [&str; 7] = [
    "--eval",
    "--experimental-loader",
    "--import",
    "--interactive",
    "--loader",
    "--print",
    "--require",
];

impl Planner<'_> {
    /// THREAT[CFG-7]: Python and Node do not import from a working directory that guests write,
    /// npx finds no packages there, and what cannot be kept from it is not started.
    pub(super) fn keep_from_working_dir(&mut self) -> Result<(), StartRefusal> {
        let is_guests = self.guest_directory(&self.plan.cwd).is_some();
        let runs_script = self.runs_script();
        let is_python = matches!(self.name(), "python" | "pypy");
        if !runs_script && (is_guests || (is_python && self.config.cwd.is_none())) {
            self.set_default("PYTHONSAFEPATH", "1");
        }
        if !is_guests {
            return Ok(());
        }
        let refused = || Err(StartRefusal::TakesFromWorkingDir(self.plan.cwd.clone()));
        match self.name() {
            // Pythons before 3.11 do not know the variable: they stop at the option.
            "python" | "pypy" if !runs_script => {
                self.plan.args.insert(0, "-P".to_owned());
                Ok(())
            }
            _ if self.is_opaque() && !self.is_plain_line() => refused(),
            "npx" => self.take_packages_from_home(),
            "npm" if self.says(0, &["exec", "x"]) => self.take_packages_from_home(),
            "uv" if self.plan.args.iter().any(|arg| arg == "run") && !self.says(0, &["tool"]) => {
                refused()
            }
            "node" | "nodejs" if !runs_script || self.has_node_options() => refused(),
            name if RUNNERS.contains(&name) => refused(),
            _ => Ok(()),
        }
    }

    /// True for a shell line that names no program known to run files, and no relative path.
    fn is_plain_line(&self) -> bool {
        let is_plain = |word: &String| {
            let name = program_name(word);
            !CommandLine::knows(name)
                && !RUNNERS.contains(&name)
                && !matches!(name, "eval" | "source")
                && !is_code(Path::new(word))
                && (word.starts_with('/') || !word.contains('/'))
        };
        let computes = |arg: &String| arg.contains("$(") || arg.contains('`');
        CommandLine::is_shell(self.name())
            && !self.plan.args.iter().any(computes)
            && self.plan.args.iter().all(|arg| self.words(arg).iter().all(is_plain))
    }

    /// npx looks for packages as if it were started in the user's home directory.
    fn take_packages_from_home(&mut self) -> Result<(), StartRefusal> {
        let home = self.settings.user_home.clone().unwrap_or_else(|| "/".into());
        self.check(&home.join("node_modules"))?;
        self.check(&home)?;
        let prefix = ["--prefix".to_owned(), home.display().to_string()];
        self.plan.args.splice(0..0, prefix);
        Ok(())
    }

    /// Whether an interpreter is told a file before anything that makes it look around.
    fn runs_script(&self) -> bool {
        match self.name() {
            "python" | "pypy" => runs_python_script(&self.plan.args),
            name => is_interpreter(name) && self.plan.args.iter().any(|arg| !arg.starts_with('-')),
        }
    }

    fn has_node_options(&self) -> bool {
        let is_before = |arg: &&String| !Path::new(arg).is_absolute();
        let mut options = self.plan.args.iter().take_while(is_before);
        let mut given = self.plan.env.get("NODE_OPTIONS").into_iter().flat_map(|o| o.split(' '));
        options.any(|arg| looks_around(arg)) || given.any(looks_around)
    }

    /// Whether the word at this place, options left out, is one of these.
    fn says(&self, at: usize, words: &[&str]) -> bool {
        let mut said = self.plan.args.iter().filter(|arg| !arg.starts_with('-'));
        said.nth(at).is_some_and(|said| words.contains(&said.as_str()))
    }

    /// What the entry says itself holds.
    fn set_default(&mut self, name: &str, value: &str) {
        self.plan.env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// An option of Node.js whose value is resolved from the working directory.
fn looks_around(arg: &str) -> bool {
    let name = arg.split('=').next().unwrap_or_default();
    match name.strip_prefix('-') {
        Some(long) if long.starts_with('-') => NODE_OPTIONS.contains(&name),
        // Short ones may be joined: `-pe`.
        Some(short) => short.contains(['e', 'i', 'p', 'r']),
        None => false,
    }
}

/// Whether Python is told a file, and not a module or code; short options may be joined: `-um`.
fn runs_python_script(args: &[String]) -> bool {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.strip_prefix('-') {
            None => return true,
            Some("") => return false,
            Some(long) if long.starts_with('-') => {}
            Some(short) => match short.find(['c', 'm', 'W', 'X']) {
                Some(at) if short.get(at..).is_some_and(|rest| rest.starts_with(['c', 'm'])) => {
                    return false;
                }
                // The value is the rest, or what follows.
                Some(at) if at + 1 == short.len() => drop(args.next()),
                Some(_) | None => {}
            },
        }
    }
    false
}
