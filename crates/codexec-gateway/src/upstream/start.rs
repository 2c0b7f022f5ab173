//! Plans how a server's program is started: program, arguments, environment and working directory,
//! or why it must not start.
//!
//! THREAT[CFG-8]: a server runs outside of the sandbox, so no part of its start may come from a
//! directory that guests can write, unless the user has named that part in the settings.

mod command_line;
mod guest_code;
mod variables;
mod working_dir;

use std::{
    collections::BTreeMap,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::GatewaySettings;
use codexec_mcp_config::{StdioConfig, program_name};

/// The PATH for servers without one.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Everything that is passed to the spawned process.
#[derive(Debug, PartialEq)]
pub(crate) struct StartPlan {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: PathBuf,
}

/// Why a program is not started, and what to do about it.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum StartRefusal {
    #[error("was not found; install it, or write its whole path")]
    NotFound,
    #[error("cannot be started in {}, which is no directory; correct `cwd`", .0.display())]
    NoDirectory(PathBuf),
    #[error(
        "is not started: {} lies in {}, where code may write; move it, or name it with \
         `files.run-from` in config.toml", .path.display(), .directory.display()
    )]
    GuestWritable { path: PathBuf, directory: PathBuf },
    #[error(
        "is not started: {} lies in {}, where code may write, and {launcher} may run it; start the \
         server without {launcher}, or name the path with `files.run-from` in config.toml",
        .path.display(), .directory.display()
    )]
    InLauncher { path: PathBuf, directory: PathBuf, launcher: String },
    #[error(
        "is not started: it takes what it runs from its working directory {}, where code may \
         write; name another with `cwd`, or name this one with `files.run-from` in config.toml",
        .0.display()
    )]
    TakesFromWorkingDir(PathBuf),
}

impl StartRefusal {
    /// Says that the path may be data, which nothing tells from code here.
    fn of_launcher(self, launcher: &str) -> StartRefusal {
        match self {
            StartRefusal::GuestWritable { path, directory } => {
                StartRefusal::InLauncher { path, directory, launcher: launcher.to_owned() }
            }
            other => other,
        }
    }
}

/// A plan while it is made.
struct StartPlanner<'a> {
    config: &'a StdioConfig,
    settings: &'a GatewaySettings,
    plan: StartPlan,
}

/// Plans the start. `env` is the entry's own environment, with secrets resolved.
pub(crate) fn plan(
    config: &StdioConfig,
    env: &[(String, String)],
    settings: &GatewaySettings,
) -> Result<StartPlan, StartRefusal> {
    let home = settings.user_home.as_deref().filter(|home| home.is_dir());
    let cwd = config.cwd.as_deref().or(home).unwrap_or(Path::new("/")).to_owned();
    let env = settings.env.iter().chain(env).cloned().collect();
    let plan = StartPlan { program: PathBuf::new(), args: config.args.clone(), env, cwd };
    let mut planner = StartPlanner { config, settings, plan };
    planner.find_program()?;
    if !planner.plan.cwd.is_dir() {
        return Err(StartRefusal::NoDirectory(planner.plan.cwd));
    }
    planner.check_path(&planner.plan.program)?;
    planner.check_arguments()?;
    planner.check_variables()?;
    planner.clean_path();
    planner.isolate_from_working_dir()?;
    Ok(planner.plan)
}

impl StartPlanner<'_> {
    /// Finds the program on the entry's PATH. A guest-writable folder there is not silently
    /// skipped: a different program than the user's would run.
    fn find_program(&mut self) -> Result<(), StartRefusal> {
        let command = Path::new(&self.config.command);
        if self.config.command.contains('/') {
            self.plan.program = self.plan.cwd.join(command);
            return if self.plan.program.exists() { Ok(()) } else { Err(StartRefusal::NotFound) };
        }
        let path = self.plan.env.get("PATH").map_or(USUAL_PATH, String::as_str);
        let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
        let found = folders.map(|folder| folder.join(command)).find(|path| is_program(path));
        self.plan.program = found.ok_or(StartRefusal::NotFound)?;
        Ok(())
    }

    fn check_path(&self, path: &Path) -> Result<(), StartRefusal> {
        match self.guest_directory(path) {
            None => Ok(()),
            Some(directory) => {
                let (path, directory) = (path.to_owned(), directory.to_owned());
                Err(StartRefusal::GuestWritable { path, directory })
            }
        }
    }

    fn guest_directory(&self, path: &Path) -> Option<&Path> {
        let read_link = |link: &Path| std::fs::read_link(link).ok();
        self.settings.guest_paths.find_writable_dir(path, &read_link)
    }

    /// Programs that the server starts itself are not looked for in guests' folders either.
    fn clean_path(&mut self) {
        let Some(path) = self.plan.env.get("PATH") else { return };
        let is_safe =
            |folder: &PathBuf| folder.is_absolute() && self.guest_directory(folder).is_none();
        let folders = std::env::split_paths(path).filter(is_safe);
        if let Ok(Ok(clean)) = std::env::join_paths(folders).map(std::ffi::OsString::into_string) {
            self.plan.env.insert("PATH".to_owned(), clean);
        }
    }

    fn name(&self) -> &str {
        program_name(&self.config.command)
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests;
