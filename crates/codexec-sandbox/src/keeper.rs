//! A keeper: sits in one slot's cgroups and shared walls, forks workers, reports their ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::control::receive;
use crate::sys::{self, Cloned};
use crate::{FromKeeper, Launch, ToKeeper, hull, worker};

/// Does what the host says over `socket` until the host is gone. Never returns: in the keeper
/// because it ends, in a worker because the guest's end is the process's end.
pub(crate) fn serve(socket: &OwnedFd, guest: impl FnOnce(UnixStream)) -> ! {
    match workers(socket) {
        Ok(Some((launch, worker_socket))) => worker::serve(&launch, worker_socket, guest),
        Ok(None) => sys::exit_now(0),
        Err(_) => sys::exit_now(1),
    }
}

/// In a new worker: the plan and its socket. In the keeper: `None` when the host is gone.
fn workers(socket: &OwnedFd) -> io::Result<Option<(Launch, UnixStream)>> {
    sys::close_all_but(socket.as_fd())?;
    let pid = i32::try_from(std::process::id()).unwrap_or(-1);
    FromKeeper::Hello { pid }.send(socket, &[])?;
    let Some((ToKeeper::Build(launch), _)) = receive(socket.as_fd())? else { return Ok(None) };
    let missing = match hull::build(&launch) {
        Ok(missing) => missing,
        Err(broken) => {
            FromKeeper::Broken(broken).send(socket, &[])?;
            return Ok(None);
        }
    };
    FromKeeper::Built { missing }.send(socket, &[])?;

    while let Some((ToKeeper::Spawn, _)) = receive::<ToKeeper>(socket.as_fd())? {
        let (ours, theirs) = UnixStream::pair()?;
        match worker::clone(&launch) {
            Ok(Cloned::Child) => return Ok(Some((launch, theirs))),
            Ok(Cloned::Parent { pid, pidfd }) => {
                FromKeeper::Spawned { pid }.send(socket, &[ours.as_fd(), pidfd.as_fd()])?;
                drop((ours, theirs));
                wait(socket.as_fd(), pidfd.as_fd())?;
                FromKeeper::Exited(sys::reap(pid)?).send(socket, &[])?;
            }
            Err(broken) => FromKeeper::Broken(broken).send(socket, &[])?,
        }
    }
    Ok(None)
}

/// Returns when the worker has ended. If the host goes first, the worker ends with it.
fn wait(host: BorrowedFd<'_>, worker: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        // A host that is gone is told even when nothing is asked for.
        let mut fds =
            [PollFd::new(worker, PollFlags::POLLIN), PollFd::new(host, PollFlags::empty())];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [worker_end, host_end] = fds.map(|fd| fd.any().unwrap_or(false));
        if worker_end {
            return Ok(());
        }
        if host_end {
            sys::kill(worker)?;
        }
    }
}
