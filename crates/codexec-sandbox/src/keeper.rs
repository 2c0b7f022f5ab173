//! A keeper: sits in one slot's cgroups and shared layers, forks workers, and reports their exits.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::control::{self, receive};
use crate::init::{self, InitLaunch};
use crate::sys::{self, Cloned};
use crate::{
    FromKeeper, Launch, Layer, LayerError, OverlayTask, ToKeeper, overlay, shared_layers, worker,
};

/// The role of this process when [`serve_host`] returns: the keeper, or a child that it forked.
enum ProcessRole {
    /// The keeper, whose host is gone.
    Finished,
    /// A new worker that runs the engine in our own binary.
    Worker(Box<Launch>, UnixStream),
    /// The first process of a new worker for programs.
    Init(Box<InitLaunch>),
}

/// Serves the host over `socket` until the host is gone. Never returns: the keeper exits then, and
/// a forked worker exits when its guest ends.
pub(crate) fn serve(socket: &OwnedFd, guest: impl FnOnce(UnixStream)) -> ! {
    match serve_host(socket) {
        Ok(ProcessRole::Worker(launch, socket)) => worker::serve(&launch, socket, guest),
        Ok(ProcessRole::Init(init)) => init::serve(*init),
        Ok(ProcessRole::Finished) => sys::exit_now(0),
        Err(_) => sys::exit_now(1),
    }
}

fn serve_host(socket: &OwnedFd) -> io::Result<ProcessRole> {
    sys::close_all_but(&[socket.as_fd()])?;
    let own = sys::open_process(std::process::id())?;
    FromKeeper::Hello.send(socket, &[own.as_fd()])?;
    drop(own);
    let Some((ToKeeper::Build(launch), _)) = receive(socket.as_fd())? else {
        return Ok(ProcessRole::Finished);
    };
    let built = if launch.rootfs.is_some() {
        shared_layers::isolate_slot(&launch)
    } else {
        shared_layers::confine_keeper(&launch)
    };
    match built {
        Ok(missing) => FromKeeper::Built { missing }.send(socket, &[])?,
        Err(broken) => {
            FromKeeper::Broken(broken).send(socket, &[])?;
            return Ok(ProcessRole::Finished);
        }
    }
    while let Some((request, fds)) = receive::<ToKeeper>(socket.as_fd())? {
        let (ours, theirs) = match &request {
            ToKeeper::Spawn => {
                let (ours, theirs) = UnixStream::pair()?;
                (OwnedFd::from(ours), OwnedFd::from(theirs))
            }
            ToKeeper::Program(_) => control::pair()?,
            ToKeeper::Build(_) | ToKeeper::Overlay(_) => return Ok(ProcessRole::Finished),
        };
        match worker::clone(&launch) {
            Ok(Cloned::Child) => {
                return Ok(match request {
                    ToKeeper::Program(program) => {
                        let init = InitLaunch { launch, program, control: theirs, fds };
                        ProcessRole::Init(Box::new(init))
                    }
                    ToKeeper::Spawn | ToKeeper::Build(_) | ToKeeper::Overlay(_) => {
                        ProcessRole::Worker(Box::new(launch), UnixStream::from(theirs))
                    }
                });
            }
            Ok(Cloned::Parent { pid, pidfd }) => {
                FromKeeper::Spawned.send(socket, &[ours.as_fd(), pidfd.as_fd()])?;
                // Only the worker holds the guest's descriptors now.
                drop((ours, theirs, fds));
                wait_for_worker(socket.as_fd(), pidfd.as_fd())?;
                FromKeeper::Exited(sys::reap(pid)?).send(socket, &[])?;
            }
            Err(broken) => FromKeeper::Broken(broken).send(socket, &[])?,
        }
    }
    Ok(ProcessRole::Finished)
}

/// Waits for the worker to end, and mounts its overlay whenever the host requests that. If the
/// host is gone first, the worker is killed.
fn wait_for_worker(host: BorrowedFd<'_>, worker: BorrowedFd<'_>) -> io::Result<()> {
    let mut is_host_gone = false;
    let mut helper: Option<MountHelper> = None;
    loop {
        // POLLHUP is reported even without any requested event.
        let events = if helper.is_some() { PollFlags::empty() } else { PollFlags::POLLIN };
        let mut fds = vec![PollFd::new(worker, PollFlags::POLLIN)];
        fds.push(match &helper {
            Some(helper) => PollFd::new(helper.pidfd.as_fd(), PollFlags::POLLIN),
            None => PollFd::new(worker, PollFlags::empty()),
        });
        if !is_host_gone {
            fds.push(PollFd::new(host, events));
        }
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let events_of =
            |at: usize| fds.get(at).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
        let [worker_events, helper_events, host_events] = [0, 1, 2].map(events_of);
        if !worker_events.is_empty() {
            if let Some(helper) = helper {
                sys::kill(helper.pidfd.as_fd())?;
                sys::reap(helper.pid)?;
            }
            return Ok(());
        }
        if let Some(ended) = helper.take_if(|_| !helper_events.is_empty()) {
            ended.reap(host)?;
        }
        if host_events.is_empty() {
            continue;
        }
        let message = if host_events.contains(PollFlags::POLLIN) { receive(host)? } else { None };
        match message {
            Some((ToKeeper::Overlay(task), fds)) => {
                helper = Some(MountHelper::start(host, task, fds)?);
            }
            Some(_) | None => {
                is_host_gone = true;
                sys::kill(worker)?;
            }
        }
    }
}

/// A child of the keeper that mounts an overlay in the worker's namespaces.
struct MountHelper {
    pid: i32,
    pidfd: OwnedFd,
}

impl MountHelper {
    fn start(
        host: BorrowedFd<'_>,
        task: OverlayTask,
        fds: Vec<OwnedFd>,
    ) -> io::Result<MountHelper> {
        match sys::clone_into(0)? {
            Cloned::Child => overlay::serve(host, task, fds),
            Cloned::Parent { pid, pidfd } => Ok(MountHelper { pid, pidfd }),
        }
    }

    /// Reaps the helper. A helper reports its result to the host itself, unless it died.
    fn reap(self, host: BorrowedFd<'_>) -> io::Result<()> {
        if sys::reap(self.pid)?.code != Some(0) {
            let broken = LayerError::new(Layer::Mount, "the mount helper died", libc::EIO);
            FromKeeper::NotMounted(broken).send(host, &[])?;
        }
        Ok(())
    }
}
