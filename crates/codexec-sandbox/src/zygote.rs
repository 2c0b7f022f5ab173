//! The zygote: an engine loaded once, forked into keepers on demand.

use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{ForkResult, fork};

use crate::control::{NewKeeper, receive};
use crate::{keeper, sys};

/// Forks a keeper for every socket that the host sends over `control`, until the host is gone.
/// In each worker, behind its walls, `guest` is called with the worker's one socket.
///
/// Only for a single-threaded process. Never returns.
pub fn serve_zygote(control: OwnedFd, guest: impl FnOnce(UnixStream)) -> ! {
    match keepers(&control) {
        Ok(Some(socket)) => {
            // It is our standard input, which the keeper replaces before it forks anything.
            let _ = control.into_raw_fd();
            keeper::serve(&socket, guest)
        }
        Ok(None) => sys::exit_now(0),
        Err(_) => sys::exit_now(1),
    }
}

/// In a new keeper: its socket. In the zygote: `None` when the host is gone.
fn keepers(control: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    // Dead keepers reap themselves.
    ignore_children(SigHandler::SigIgn)?;
    while let Some((NewKeeper, mut fds)) = receive(control.as_fd())? {
        let Some(socket) = fds.pop() else { continue };
        if let ForkResult::Child = single_threaded_fork()? {
            ignore_children(SigHandler::SigDfl)?;
            return Ok(Some(socket));
        }
    }
    Ok(None)
}

#[expect(unsafe_code, reason = "fork and signal dispositions")]
fn single_threaded_fork() -> io::Result<ForkResult> {
    // SAFETY: the zygote has one thread, so the child's copy of memory is consistent.
    Ok(unsafe { fork() }?)
}

#[expect(unsafe_code, reason = "fork and signal dispositions")]
fn ignore_children(handler: SigHandler) -> io::Result<()> {
    // SAFETY: neither handler runs any code of ours.
    unsafe { signal(Signal::SIGCHLD, handler) }?;
    Ok(())
}
