//! A keeper: sits in one slot's cgroups and shared walls, forks workers, reports their ends.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::control::{self, receive};
use crate::init::{self, Born};
use crate::sys::{self, Cloned};
use crate::{Broken, FromKeeper, Launch, Layer, OverlayRequest, ToKeeper, hull, overlay, worker};

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
    let pid = i32::try_from(std::process::id()).unwrap_or(-1);
    FromKeeper::Hello { pid }.send(socket, &[])?;
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
            ToKeeper::Build(_) | ToKeeper::Overlay(_) => return Ok(Fate::Over),
        };
        match worker::clone(&launch) {
            Ok(Cloned::Child) => {
                return Ok(match asked {
                    ToKeeper::Program(program) => {
                        Fate::Init(Box::new(Born { launch, program, control: theirs, fds }))
                    }
                    ToKeeper::Spawn | ToKeeper::Build(_) | ToKeeper::Overlay(_) => {
                        Fate::Worker(Box::new(launch), UnixStream::from(theirs))
                    }
                });
            }
            Ok(Cloned::Parent { pid, pidfd }) => {
                FromKeeper::Spawned { pid }.send(socket, &[ours.as_fd(), pidfd.as_fd()])?;
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

/// Returns when the worker has ended, and gives the worker its overlay whenever the host asks for
/// it. If the host goes first, the worker ends with it.
fn wait(host: BorrowedFd<'_>, worker: BorrowedFd<'_>) -> io::Result<()> {
    let mut is_alone = false;
    let mut helper: Option<Helper> = None;
    loop {
        // A host that is gone is told even when nothing is asked for.
        let asks = if helper.is_some() { PollFlags::empty() } else { PollFlags::POLLIN };
        let mut fds = vec![PollFd::new(worker, PollFlags::POLLIN)];
        fds.push(match &helper {
            Some(helper) => PollFd::new(helper.pidfd.as_fd(), PollFlags::POLLIN),
            None => PollFd::new(worker, PollFlags::empty()),
        });
        if !is_alone {
            fds.push(PollFd::new(host, asks));
        }
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let heard = |at: usize| fds.get(at).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        let [worker_end, helper_end, host_word] = [heard(0), heard(1), heard(2)];
        if !worker_end.is_empty() {
            if let Some(helper) = helper {
                sys::kill(helper.pidfd.as_fd())?;
                sys::reap(helper.pid)?;
            }
            return Ok(());
        }
        if let Some(ended) = helper.take_if(|_| !helper_end.is_empty()) {
            ended.judge(host)?;
        }
        if host_word.is_empty() {
            continue;
        }
        let asked = if host_word.contains(PollFlags::POLLIN) { receive(host)? } else { None };
        match asked {
            Some((ToKeeper::Overlay(request), fds)) => {
                helper = Some(Helper::start(host, &request, fds)?);
            }
            Some(_) | None => {
                is_alone = true;
                sys::kill(worker)?;
            }
        }
    }
}

/// A child of the keeper's that mounts something in the worker's namespaces.
struct Helper {
    pid: i32,
    pidfd: OwnedFd,
}

impl Helper {
    fn start(
        host: BorrowedFd<'_>,
        request: &OverlayRequest,
        fds: Vec<OwnedFd>,
    ) -> io::Result<Helper> {
        match sys::clone_into(0)? {
            Cloned::Child => overlay::serve(host, request, fds),
            Cloned::Parent { pid, pidfd } => Ok(Helper { pid, pidfd }),
        }
    }

    /// A helper says itself how it went, unless it could not.
    fn judge(self, host: BorrowedFd<'_>) -> io::Result<()> {
        if sys::reap(self.pid)?.code != Some(0) {
            let broken = Broken::new(Layer::Mount, "the helper that mounts died", libc::EIO);
            FromKeeper::NotMounted(broken).send(host, &[])?;
        }
        Ok(())
    }
}
