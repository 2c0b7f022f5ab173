//! The zygote: an engine loaded once, forked into keepers on demand; or, for programs, the room
//! that they all live in.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::dup2_stdin;

use crate::attach::attach;
use crate::control::{Command, FromZygote, ToZygote, Unstarted, receive, send};
use crate::exec::Exec;
use crate::{Broken, Launch, Layer, hull, keeper, sys};

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
        Ok(None) => {
            // A zygote with a process namespace of its own is its first process, and takes
            // everything in there along when it ends: keepers may have guests that run.
            sys::wait_for_all();
            sys::exit_now(0)
        }
        Err(_) => sys::exit_now(1),
    }
}

/// In a new keeper: its socket. In the zygote: `None` when the host is gone.
fn keepers(control: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    sys::raise_open_files()?;
    // Dead keepers reap themselves.
    handle_children(SigHandler::SigIgn)?;
    let mut lowered = Vec::new();
    while let Some((asked, mut fds)) = receive(control.as_fd())? {
        let beside = fds.pop();
        match (asked, beside) {
            (ToZygote::Enter(launch), _) => {
                send(control.as_fd(), &enter(&launch), &[])?;
                lowered = launch.lowered;
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
                    start(&command, &lowered, &socket);
                }
            }
            (ToZygote::Attach { target }, Some(answer)) => attach(&target, fds, &answer)?,
            (ToZygote::Keeper | ToZygote::Start(_) | ToZygote::Attach { .. }, None) => {}
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

/// Becomes another program, which forks guests by itself and makes them enter their workers. Never
/// returns: where that fails, the host is told why.
fn start(command: &Command, lowered: &[Layer], socket: &OwnedFd) -> ! {
    let Err(broken) = become_program(command, lowered, socket);
    let _ = send(socket.as_fd(), &Unstarted::Broken(broken), &[]);
    sys::exit_now(127)
}

fn become_program(
    command: &Command,
    lowered: &[Layer],
    socket: &OwnedFd,
) -> Result<Infallible, Broken> {
    let failed = |step: &'static str| {
        move |error: io::Error| {
            Broken::new(Layer::User, step, error.raw_os_error().unwrap_or(libc::EIO))
        }
    };
    let exec = Exec::new(command).map_err(failed("read the command"))?;
    sys::close_all_but(&[socket.as_fd()])
        .and_then(|()| sys::default_signal(Signal::SIGPIPE))
        .and_then(|()| dup2_stdin(socket))
        .map_err(|errno| Broken::new(Layer::User, "take its socket", errno as i32))?;
    hull::surround_program(lowered)?;
    exec.run().map_err(failed("start the program"))
}

#[expect(unsafe_code, reason = "signal dispositions")]
fn handle_children(handler: SigHandler) -> io::Result<()> {
    // SAFETY: neither handler runs any code of ours.
    unsafe { signal(Signal::SIGCHLD, handler) }?;
    Ok(())
}
