//! The zygote: loads an engine once and forks keepers on demand. A zygote for programs loads no
//! engine, but builds the rootfs for all its keepers.

use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::dup2_stdin;

use crate::attach::attach;
use crate::control::{FromZygote, ProgramCommand, StartFailure, ToZygote, receive, send};
use crate::exec::PreparedCommand;
use crate::{Launch, Layer, LayerError, keeper, shared_layers, sys};

/// Forks a keeper for every socket that the host sends over `control`, until the host is gone.
/// Each confined worker calls `guest` with its one socket.
///
/// Only for a single-threaded process. Never returns.
pub fn serve_zygote(control: OwnedFd, guest: impl FnOnce(UnixStream)) -> ! {
    match serve_host(&control) {
        Ok(Some(socket)) => {
            // `control` is our stdin, which the keeper replaces before it forks anything.
            let _ = control.into_raw_fd();
            keeper::serve(&socket, guest)
        }
        Ok(None) => {
            // The first process of a PID namespace takes all others along when it exits, and
            // keepers may still have running guests.
            sys::wait_for_all();
            sys::exit_now(0)
        }
        Err(_) => sys::exit_now(1),
    }
}

/// Serves the host. Returns its socket in a new keeper, and `None` in the zygote when the host is
/// gone.
fn serve_host(control: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    sys::raise_open_files()?;
    // The kernel reaps dead keepers.
    handle_sigchld(SigHandler::SigIgn)?;
    let mut lowered = Vec::new();
    while let Some((request, mut fds)) = receive(control.as_fd())? {
        let last_fd = fds.pop();
        match (request, last_fd) {
            (ToZygote::Enter(launch), _) => {
                send(control.as_fd(), &enter(&launch), &[])?;
                lowered = launch.lowered;
            }
            (ToZygote::Keeper, Some(socket)) => {
                if sys::fork()?.is_none() {
                    handle_sigchld(SigHandler::SigDfl)?;
                    return Ok(Some(socket));
                }
            }
            (ToZygote::Start(command), Some(socket)) => {
                if sys::fork()?.is_none() {
                    handle_sigchld(SigHandler::SigDfl)?;
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
    let Some(rootfs) = &launch.rootfs else { return FromZygote::Entered { missing: Vec::new() } };
    match shared_layers::enter_rootfs(launch, rootfs) {
        Ok(missing) => FromZygote::Entered { missing },
        Err(broken) => FromZygote::Broken(broken),
    }
}

/// Executes another program, which forks guests itself and makes them enter their workers. Never
/// returns: on failure it reports the error to the host and exits.
fn start(command: &ProgramCommand, lowered: &[Layer], socket: &OwnedFd) -> ! {
    let Err(broken) = exec_program(command, lowered, socket);
    let _ = send(socket.as_fd(), &StartFailure::Broken(broken), &[]);
    sys::exit_now(127)
}

fn exec_program(
    command: &ProgramCommand,
    lowered: &[Layer],
    socket: &OwnedFd,
) -> Result<Infallible, LayerError> {
    let failed = |step: &'static str| {
        move |error: io::Error| {
            LayerError::new(Layer::User, step, error.raw_os_error().unwrap_or(libc::EIO))
        }
    };
    let prepared = PreparedCommand::new(command).map_err(failed("convert the command"))?;
    sys::close_all_but(&[socket.as_fd()])
        .and_then(|()| sys::default_signal(Signal::SIGPIPE))
        .and_then(|()| dup2_stdin(socket))
        .map_err(|errno| LayerError::new(Layer::User, "use its socket as stdin", errno as i32))?;
    shared_layers::confine_forking_program(lowered)?;
    prepared.run().map_err(failed("start the program"))
}

#[expect(unsafe_code, reason = "signal dispositions")]
fn handle_sigchld(handler: SigHandler) -> io::Result<()> {
    // SAFETY: neither handler runs any code of ours.
    unsafe { signal(Signal::SIGCHLD, handler) }?;
    Ok(())
}
