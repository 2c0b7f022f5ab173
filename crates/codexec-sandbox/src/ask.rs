//! Asking an interpreter about itself: the one program of the user's that runs outside a sandbox.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::sys;

/// What the program prints. Off any request: it may take as long as `patience`.
#[expect(clippy::disallowed_methods, reason = "asks an interpreter about itself, off any request")]
pub fn ask_program(
    program: &Path,
    arguments: &[&str],
    environment: &[(String, OsString)],
    patience: Duration,
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
    if !ends_within(child.id(), patience)? {
        let _ = child.kill();
        let _ = child.wait();
        return Err(io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time"));
    }
    let (said, complained) = (child.stdout.take().map(rest), child.stderr.take().map(rest));
    if child.wait()?.success() {
        return said.unwrap_or_else(|| Ok(String::new()));
    }
    let complained = complained.transpose()?.unwrap_or_default();
    let last = complained.trim().lines().last().unwrap_or("it failed").to_owned();
    Err(io::Error::other(last))
}

fn ends_within(pid: u32, patience: Duration) -> io::Result<bool> {
    let process = sys::open_process(pid)?;
    let deadline = Instant::now() + patience;
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

/// What is in a pipe now. Something that the program has left behind may keep it open for ever.
fn rest(mut pipe: impl Read + AsFd) -> io::Result<String> {
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
