//! Runs one integration test in its own process.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _},
    os::unix::process::ExitStatusExt as _,
    process::{self, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use crate::step::within;

/// The time after which a test is killed. Tests give up earlier by themselves.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The beginning of libtest's last line. Libtest also succeeds if it finds no test of the name.
const PASSED: &str = "test result: ok. 1 passed;";

/// The end of one test.
pub(crate) struct TestEnd {
    pub(crate) is_ok: bool,
    pub(crate) duration: Duration,
    pub(crate) output: String,
}

/// Runs the command to its end, or kills it after [`TIMEOUT`].
pub(crate) fn run(command: &mut Command) -> Result<TestEnd> {
    let start = Instant::now();
    // The output goes to a file: a process that outlives the test could hold a pipe open.
    let mut file = open_unnamed_file().context("cannot create a file for the output of a test")?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file.try_clone()?);
    let mut child = command.spawn().context("the test binary does not start")?;
    let is_killed = !within(TIMEOUT, || Ok(child.try_wait()?.is_some()))?;
    if is_killed {
        child.kill()?;
    }
    let status = child.wait()?;
    let duration = start.elapsed();
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let mut output = String::from_utf8_lossy(&bytes).into_owned();
    if is_killed {
        output.push_str("\nthe test was killed because it took too long\n");
    } else if let Some(signal) = status.signal() {
        output.push_str(&format!("\nthe test ended by signal {signal}\n"));
    }
    let is_ok = status.success() && output.contains(PASSED);
    Ok(TestEnd { is_ok, duration, output })
}

/// Opens a file without a name, which disappears when nobody has it open.
fn open_unnamed_file() -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("codexec-test-{}-{number}", process::id()));
    let file = File::options().read(true).append(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}
