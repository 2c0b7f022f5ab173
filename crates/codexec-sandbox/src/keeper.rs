//! A keeper: sits in one slot's cgroups and shared walls, forks workers, reports their ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::control::{self, receive};
use crate::init::{self, Born};
use crate::sys::{self, Cloned};
use crate::{FromKeeper, Launch, ToKeeper, hull, worker};

/// What a keeper becomes.
enum Fate {
    /// The host is gone.
    Over,
    /// This process is a new worker, for our own guest.
    Worker(Box<Launch>, UnixStream),
    /// This process is the first of a new worker for programs.
    Init(Box<Born>),
}

/// Does what the host says over `socket` until the host is gone. Never returns: in the keeper
/// because it ends, in a worker because the guest's end is the process's end.
pub(crate) fn serve(socket: &OwnedFd, guest: impl FnOnce(UnixStream)) -> ! {
    match keep(socket) {
        Ok(Fate::Worker(launch, worker_socket)) => worker::serve(&launch, worker_socket, guest),
        Ok(Fate::Init(born)) => init::serve(*born),
        Ok(Fate::Over) => sys::exit_now(0),
        Err(_) => sys::exit_now(1),
    }
}

fn keep(socket: &OwnedFd) -> io::Result<Fate> {
    sys::close_all_but(&[socket.as_fd()])?;
    let own = sys::open_process(std::process::id())?;
    FromKeeper::Hello.send(socket, &[own.as_fd()])?;
    drop(own);
    let Some((ToKeeper::Build(launch), _)) = receive(socket.as_fd())? else {
        return Ok(Fate::Over);
    };
    let built = if launch.room.is_some() { hull::settle(&launch) } else { hull::build(&launch) };
    match built {
        Ok(missing) => FromKeeper::Built { missing }.send(socket, &[])?,
        Err(broken) => {
            FromKeeper::Broken(broken).send(socket, &[])?;
            return Ok(Fate::Over);
        }
    }
    while let Some((asked, fds)) = receive::<ToKeeper>(socket.as_fd())? {
        let (ours, theirs) = match &asked {
            ToKeeper::Spawn => {
                let (ours, theirs) = UnixStream::pair()?;
                (OwnedFd::from(ours), OwnedFd::from(theirs))
            }
            ToKeeper::Program(_) => control::pair()?,
            ToKeeper::Build(_) => return Ok(Fate::Over),
        };
        match worker::clone(&launch) {
            Ok(Cloned::Child) => {
                return Ok(match asked {
                    ToKeeper::Program(program) => {
                        Fate::Init(Box::new(Born { launch, program, control: theirs, fds }))
                    }
                    ToKeeper::Spawn | ToKeeper::Build(_) => {
                        Fate::Worker(Box::new(launch), UnixStream::from(theirs))
                    }
                });
            }
            Ok(Cloned::Parent { pid, pidfd }) => {
                FromKeeper::Spawned.send(socket, &[ours.as_fd(), pidfd.as_fd()])?;
                // Only the worker holds the guest's descriptors now.
                drop((ours, theirs, fds));
                wait(socket.as_fd(), pidfd.as_fd())?;
                FromKeeper::Exited(sys::reap(pid)?).send(socket, &[])?;
            }
            Err(broken) => FromKeeper::Broken(broken).send(socket, &[])?,
        }
    }
    Ok(Fate::Over)
}

/// Returns when the worker has ended. If the host goes first, the worker ends with it.
fn wait(host: BorrowedFd<'_>, worker: BorrowedFd<'_>) -> io::Result<()> {
    let mut is_alone = false;
    loop {
        // A host that is gone is told even when nothing is asked for.
        let mut fds =
            [PollFd::new(worker, PollFlags::POLLIN), PollFd::new(host, PollFlags::empty())];
        let watched = if is_alone { 1 } else { 2 };
        match poll(fds.get_mut(..watched).unwrap_or_default(), PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [worker_end, host_end] = fds.map(|fd| fd.any().unwrap_or(false));
        if worker_end {
            return Ok(());
        }
        if host_end && !is_alone {
            is_alone = true;
            sys::kill(worker)?;
        }
    }
}
