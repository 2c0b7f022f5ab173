//! A worker: forked into namespaces of its own, confined, then given to one guest.

use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::Signal;

use crate::sys::{self, Cloned};
use crate::{Broken, Launch, Layer, seccomp};

/// The namespaces that no two workers share. The network namespace is the keeper's: it is
/// empty, and a worker cannot make a socket in it.
const OWN: [(Layer, libc::c_int); 6] = [
    (Layer::User, libc::CLONE_NEWUSER),
    // THREAT[ESC-3], THREAT[RES-6]: a guest sees no process but its own, and all of them die
    // with the first.
    (Layer::Pid, libc::CLONE_NEWPID),
    (Layer::Mount, libc::CLONE_NEWNS),
    (Layer::Ipc, libc::CLONE_NEWIPC),
    (Layer::Uts, libc::CLONE_NEWUTS),
    (Layer::CgroupNamespace, libc::CLONE_NEWCGROUP),
];

/// The first thing a worker says on its socket: that every wall stands, or which does not.
pub(crate) const CONFINED: u8 = b'1';

pub(crate) fn clone(launch: &Launch) -> Result<Cloned, Broken> {
    let is_lowered = |layer: &Layer| launch.lowered.contains(layer);
    let all = OWN.iter().fold(0, |flags, (_, flag)| flags | flag);
    let kept = OWN.iter().filter(|(layer, _)| !is_lowered(layer)).fold(0, |all, (_, f)| all | f);
    let cloned = sys::clone_into(all)
        .or_else(|errno| if kept == all { Err(errno) } else { sys::clone_into(kept) });
    cloned.map_err(|errno| Broken::new(Layer::Pid, "clone into new namespaces", errno as i32))
}

/// Raises the last walls, says so, and hands over to the guest. The guest's end is ours.
pub(crate) fn serve(launch: &Launch, socket: UnixStream, guest: impl FnOnce(UnixStream)) -> ! {
    let confined = confine(launch, &socket);
    if say(&socket, &confined).is_ok() && confined.is_ok() {
        guest(socket);
        sys::exit_now(0);
    }
    sys::exit_now(1)
}

fn confine(launch: &Launch, socket: &UnixStream) -> Result<(), Broken> {
    let raise = |layer: Layer, step: &str, result: Result<(), Errno>| match result {
        Err(errno) if !launch.lowered.contains(&layer) => {
            Err(Broken::new(layer, step, errno as i32))
        }
        Ok(()) | Err(_) => Ok(()),
    };
    raise(Layer::Pid, "die with the keeper", prctl::set_pdeathsig(Signal::SIGKILL))?;
    raise(Layer::User, "close what is not the guest's", sys::close_all_but(&[socket.as_fd()]))?;
    raise(Layer::Rlimits, "setrlimit", rlimits(launch))?;
    raise(Layer::Capabilities, "drop", sys::drop_capabilities())?;
    raise(Layer::Seccomp, "load the filter", seccomp::confine(seccomp::Calls::Interpreter))
}

pub(crate) fn rlimits(launch: &Launch) -> Result<(), Errno> {
    for (resource, limit) in launch.rlimits.numbers() {
        sys::limit(resource, limit)?;
    }
    Ok(())
}

/// One byte when all is well; else the layer that failed, as a line of JSON.
fn say(mut socket: &UnixStream, confined: &Result<(), Broken>) -> std::io::Result<()> {
    match confined {
        Ok(()) => socket.write_all(&[CONFINED]),
        Err(broken) => {
            let mut line = serde_json::to_vec(broken)?;
            line.push(b'\n');
            socket.write_all(&line)
        }
    }
}
