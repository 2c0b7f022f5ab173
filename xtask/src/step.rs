//! Runs programs and reports progress.
#![expect(clippy::disallowed_methods, reason = "xtask exists to start other programs")]

use std::{ffi::OsStr, path::Path, process::Command, process::Stdio, time::Instant};

use anyhow::{Context, Result, bail};

/// Runs one step and reports how long it took.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    say(&format!("== {name}"));
    let start = Instant::now();
    let result = work().with_context(|| format!("the step `{name}` failed"));
    let verdict = if result.is_ok() { "done" } else { "failed" };
    say(&format!("== {name}: {verdict} in {:.1} s", start.elapsed().as_secs_f64()));
    result
}

/// Runs the last step without a report, so that the test result stays the last line.
pub(crate) fn last_step(name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    say(&format!("== {name}"));
    work().with_context(|| format!("the step `{name}` failed"))
}

#[expect(clippy::print_stderr, reason = "a command for people at a terminal")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// Returns a command for the cargo that started xtask.
pub(crate) fn cargo(root: &Path) -> Command {
    let cargo = variable("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root);
    command
}

pub(crate) fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// Runs a command to its end, with inherited output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = command_line(command);
    let status = command.status().with_context(|| format!("`{shown}` does not start"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Runs a command and returns its stdout; stderr is inherited.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = command_line(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{shown}` does not start"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` did not write UTF-8"))
}

/// Returns true if a command succeeds; its output is discarded.
pub(crate) fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn command_line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
