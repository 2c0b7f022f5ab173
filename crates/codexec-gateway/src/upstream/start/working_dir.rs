//! Programs that take packages or modules from their working directory.

use std::path::Path;

use super::{StartPlanner, StartRefusal, command_line::CommandLine};
use codexec_mcp_config::{is_code, is_interpreter, program_name};

/// Programs that load code from their working directory, and have no option that prevents it.
/// Shells, wrappers and build tools are refused elsewhere.
const RUNNERS: [&str; 14] = [
    "R", "Rscript", "bun", "bunx", "deno", "go", "lua", "luajit", "pnpm", "pnpx", "ts-node", "tsx",
    "yarn", "yarnpkg",
];
/// Options whose value is resolved from the working directory.
const NODE_OPTIONS: [&str; 7] = [
    "--eval",
    "--experimental-loader",
    "--import",
    "--interactive",
    "--loader",
    "--print",
    "--require",
];

impl StartPlanner<'_> {
    /// THREAT[CFG-7]: keeps Python and Node from importing from a working directory that guests can
    /// write, and npx from using packages there. Refuses programs that cannot be kept from it.
    pub(super) fn isolate_from_working_dir(&mut self) -> Result<(), StartRefusal> {
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
            "npm" if self.has_word_at(0, &["exec", "x"]) => self.take_packages_from_home(),
            "uv" if self.plan.args.iter().any(|arg| arg == "run")
                && !self.has_word_at(0, &["tool"]) =>
            {
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
        self.check_path(&home.join("node_modules"))?;
        self.check_path(&home)?;
        let prefix = ["--prefix".to_owned(), home.display().to_string()];
        self.plan.args.splice(0..0, prefix);
        Ok(())
    }

    /// Returns true if an interpreter gets a file before any option that imports from elsewhere.
    fn runs_script(&self) -> bool {
        match self.name() {
            "python" | "pypy" => runs_python_script(&self.plan.args),
            name => is_interpreter(name) && self.plan.args.iter().any(|arg| !arg.starts_with('-')),
        }
    }

    fn has_node_options(&self) -> bool {
        let is_before = |arg: &&String| !Path::new(arg).is_absolute();
        let mut options = self.plan.args.iter().take_while(is_before);
        let mut env_options =
            self.plan.env.get("NODE_OPTIONS").into_iter().flat_map(|o| o.split(' '));
        options.any(|arg| uses_working_dir(arg)) || env_options.any(uses_working_dir)
    }

    /// Returns true if the argument at this position, not counting options, is one of `words`.
    fn has_word_at(&self, at: usize, words: &[&str]) -> bool {
        let mut words_given = self.plan.args.iter().filter(|arg| !arg.starts_with('-'));
        words_given.nth(at).is_some_and(|words_given| words.contains(&words_given.as_str()))
    }

    /// Sets a variable unless the entry itself sets it.
    fn set_default(&mut self, name: &str, value: &str) {
        self.plan.env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }
}

/// Returns true for an option of Node.js whose value is resolved from the working directory.
fn uses_working_dir(arg: &str) -> bool {
    let name = arg.split('=').next().unwrap_or_default();
    match name.strip_prefix('-') {
        Some(long) if long.starts_with('-') => NODE_OPTIONS.contains(&name),
        // Short options may be combined: `-pe`.
        Some(short) => short.contains(['e', 'i', 'p', 'r']),
        None => false,
    }
}

/// Returns true if Python runs a file, not a module or code. Short options may be combined: `-um`.
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
                // The value is the rest of the argument, or the next one.
                Some(at) if at + 1 == short.len() => drop(args.next()),
                Some(_) | None => {}
            },
        }
    }
    false
}
