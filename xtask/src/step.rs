//! Runs programs and prints lines.
#![expect(clippy::disallowed_methods, reason = "xtask starts other programs and waits for them")]

use std::{
    ffi::OsStr,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};

/// The time between two looks at something that sends no event.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Prints a line to stderr.
#[expect(clippy::print_stderr, reason = "a command for people at a terminal")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Prints a line to stdout.
#[expect(clippy::print_stdout, reason = "a command for people at a terminal")]
pub(crate) fn print(line: &str) {
    println!("{line}");
}

/// Waits for something that sends no event. Returns false if it has not happened in time.
pub(crate) fn within(
    patience: Duration,
    mut has_happened: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    let start = Instant::now();
    loop {
        if has_happened()? {
            return Ok(true);
        }
        if start.elapsed() > patience {
            return Ok(false);
        }
        thread::sleep(CHECK_INTERVAL);
    }
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
