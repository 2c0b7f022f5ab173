//! The zygote: an engine loaded once, forked into keepers on demand; or, for programs, the room
//! that they all live in.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigHandler, Signal, signal};

use crate::control::{Command, FromZygote, ToZygote, receive, send};
use crate::exec::Exec;
use crate::{Launch, hull, keeper, sys};

/// The one capability that a process needs to make others enter namespaces below its own.
const CAP_SYS_ADMIN: u32 = 21;

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
    sys::raise_open_files()?;
    // Dead keepers reap themselves.
    handle_children(SigHandler::SigIgn)?;
    while let Some((asked, mut fds)) = receive(control.as_fd())? {
        let beside = fds.pop();
        match (asked, beside) {
            (ToZygote::Enter(launch), _) => {
                send(control.as_fd(), &enter(&launch), &[])?;
            }
            (ToZygote::Keeper, Some(socket)) => {
                if sys::fork()?.is_none() {
                    handle_children(SigHandler::SigDfl)?;
                    return Ok(Some(socket));
                }
            }
            (ToZygote::Start(command), Some(socket)) => {
                if sys::fork()?.is_none() {
                    handle_children(SigHandler::SigDfl)?;
                    let _ = start(&command, socket);
                    sys::exit_now(127);
                }
            }
            (ToZygote::Keeper | ToZygote::Start(_), None) => {}
        }
    }
    Ok(None)
}

fn enter(launch: &Launch) -> FromZygote {
    let Some(room) = &launch.room else { return FromZygote::Entered { missing: Vec::new() } };
    match hull::enter_room(launch, room) {
        Ok(missing) => FromZygote::Entered { missing },
        Err(broken) => FromZygote::Broken(broken),
    }
}

/// Becomes another program, which forks guests by itself and makes them enter their workers.
fn start(command: &Command, socket: OwnedFd) -> io::Result<Infallible> {
    let exec = Exec::new(command)?;
    sys::give(socket, 0)?;
    sys::close_all_but(&[])?;
    sys::default_signal(Signal::SIGPIPE)?;
    sys::keep_capability(CAP_SYS_ADMIN)?;
    exec.run()
}

#[expect(unsafe_code, reason = "signal dispositions")]
fn handle_children(handler: SigHandler) -> io::Result<()> {
    // SAFETY: neither handler runs any code of ours.
    unsafe { signal(Signal::SIGCHLD, handler) }?;
    Ok(())
}
