//! Starting programs, and telling what is going on.
#![expect(clippy::disallowed_methods, reason = "this program is made to start others")]

use std::{ffi::OsStr, path::Path, process::Command, process::Stdio, time::Instant};

use anyhow::{Context, Result, bail};

/// Does one step and says how long it took.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    say(&format!("== {name}"));
    let start = Instant::now();
    let result = work().with_context(|| format!("the step `{name}` failed"));
    let verdict = if result.is_ok() { "done" } else { "failed" };
    say(&format!("== {name}: {verdict} in {:.1} s", start.elapsed().as_secs_f64()));
    result
}

/// Announces the last step; what it writes itself, the tests' result, stays the last line.
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

/// The cargo that started us.
pub(crate) fn cargo(root: &Path) -> Command {
    let cargo = variable("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root);
    command
}

pub(crate) fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// Runs to the end with our own output, or says in one sentence that it could not.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("`{shown}` does not start"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// What it wrote to its standard output; its standard error stays ours.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{shown}` does not start"))?;
    if !output.status.success() {
        bail!("`{shown}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` wrote no UTF-8"))
}

/// Whether it starts and succeeds, in silence.
pub(crate) fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
