//! Runs an interpreter to query its own properties. No other program of the user runs outside a
//! sandbox.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::sys;

/// Runs a program and returns its stdout. Blocks for up to `timeout`, so never call this while
/// serving a request.
#[expect(clippy::disallowed_methods, reason = "queries an interpreter, outside of any request")]
pub fn query_program(
    program: &Path,
    arguments: &[&str],
    environment: &[(String, OsString)],
    timeout: Duration,
) -> io::Result<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if !exits_within(child.id(), timeout)? {
        let _ = child.kill();
        let _ = child.wait();
        let message = format!("timed out after {} ms", timeout.as_millis());
        return Err(io::Error::new(io::ErrorKind::TimedOut, message));
    }
    let stdout = child.stdout.take().map(read_available);
    let stderr = child.stderr.take().map(read_available);
    let status = child.wait()?;
    if status.success() {
        return stdout.unwrap_or_else(|| Ok(String::new()));
    }
    let stderr = stderr.transpose()?.unwrap_or_default();
    let last = stderr.trim().lines().last();
    Err(io::Error::other(last.map_or_else(|| format!("failed: {status}"), str::to_owned)))
}

fn exits_within(pid: u32, timeout: Duration) -> io::Result<bool> {
    let process = sys::open_process(pid)?;
    let deadline = Instant::now() + timeout;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads what is in a pipe now, without waiting for end of file: a process that the program left
/// behind may hold the pipe open for ever.
fn read_available(mut pipe: impl Read + AsFd) -> io::Result<String> {
    fcntl(pipe.as_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    let mut bytes = Vec::new();
    match pipe.read_to_end(&mut bytes) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
        Ok(_) | Err(_) => {}
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
