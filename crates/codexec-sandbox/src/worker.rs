//! A worker: a fork in its own namespaces, which confines itself and then runs one guest.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;

use crate::sys::{self, Cloned};
use crate::{Launch, Layer, LayerError, seccomp};

/// The namespaces that no two workers share. The network namespace is that of the keeper: it is
/// empty, and a worker cannot create sockets in it.
const UNSHARED: [(Layer, libc::c_int); 6] = [
    (Layer::User, libc::CLONE_NEWUSER),
    // THREAT[ESC-3], THREAT[RES-6]: a guest sees only its own processes, and all of them die with
    // the first.
    (Layer::Pid, libc::CLONE_NEWPID),
    (Layer::Mount, libc::CLONE_NEWNS),
    (Layer::Ipc, libc::CLONE_NEWIPC),
    (Layer::Uts, libc::CLONE_NEWUTS),
    (Layer::CgroupNamespace, libc::CLONE_NEWCGROUP),
];

/// The first byte on a worker's socket if every layer is in force. See [`report`].
pub(crate) const CONFINED: u8 = b'1';

pub(crate) fn clone(launch: &Launch) -> Result<Cloned, LayerError> {
    let is_lowered = |layer: &Layer| launch.lowered.contains(layer);
    let all = UNSHARED.iter().fold(0, |flags, (_, flag)| flags | flag);
    let required = UNSHARED.iter().filter(|(layer, _)| !is_lowered(layer));
    let required = required.fold(0, |flags, (_, flag)| flags | flag);
    let cloned = sys::clone_into(all)
        .or_else(|errno| if required == all { Err(errno) } else { sys::clone_into(required) });
    cloned.map_err(|errno| LayerError::new(Layer::Pid, "clone into new namespaces", errno as i32))
}

/// Applies the last layers, reports the result, runs the guest, and exits.
pub(crate) fn serve(launch: &Launch, socket: UnixStream, guest: impl FnOnce(UnixStream)) -> ! {
    let confined = confine(launch, &socket);
    if report(&socket, &confined).is_ok() && confined.is_ok() {
        guest(socket);
        sys::exit_now(0);
    }
    sys::exit_now(1)
}

fn confine(launch: &Launch, socket: &UnixStream) -> Result<(), LayerError> {
    let require = |layer: Layer, step: &str, result: Result<(), Errno>| match result {
        Err(errno) if !launch.lowered.contains(&layer) => {
            Err(LayerError::new(layer, step, errno as i32))
        }
        Ok(()) | Err(_) => Ok(()),
    };
    require(Layer::Pid, "die with the keeper", prctl::set_pdeathsig(Signal::SIGKILL))?;
    require(Layer::User, "close inherited descriptors", sys::close_all_but(&[socket.as_fd()]))?;
    require(Layer::Rlimits, "setrlimit", set_rlimits(launch))?;
    require(Layer::Capabilities, "drop", sys::drop_capabilities())?;
    require(Layer::Seccomp, "load the filter", seccomp::load_filter(seccomp::Profile::Interpreter))
}

pub(crate) fn set_rlimits(launch: &Launch) -> Result<(), Errno> {
    for (resource, limit) in launch.rlimits.numbers() {
        sys::lower_limit(resource, limit)?;
    }
    Ok(())
}

/// Writes one byte on success, or else the failed layer as a line of JSON.
fn report(mut socket: &UnixStream, confined: &Result<(), LayerError>) -> std::io::Result<()> {
    match confined {
        Ok(()) => socket.write_all(&[CONFINED]),
        Err(broken) => {
            let mut line = serde_json::to_vec(broken)?;
            line.push(b'\n');
            socket.write_all(&line)
        }
    }
}
