use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::sys;

/// What process 1 hears: that a child has ended, or that the host wants the guest to end, or to
/// stop what it does.
pub(super) struct Signals(SignalFd);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signalled {
    /// The guest's first process has ended; its wait status.
    Ended(i32),
    Interrupt,
    Other,
}

impl Signals {
    pub(super) fn new() -> Result<Signals, Errno> {
        let mut heard = SigSet::empty();
        heard.add(Signal::SIGCHLD);
        heard.add(Signal::SIGTERM);
        heard.add(Signal::SIGINT);
        heard.thread_block()?;
        SignalFd::with_flags(&heard, SfdFlags::SFD_CLOEXEC).map(Signals)
    }

    /// The next signal, if there is one.
    pub(super) fn waiting(&self, guest: Option<i32>) -> Result<Option<Signalled>, Errno> {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::ZERO) {
            Ok(0) | Err(Errno::EINTR) => Ok(None),
            Ok(_) => self.next(guest).map(Some),
            Err(errno) => Err(errno),
        }
    }

    /// Waits for the next signal.
    pub(super) fn next(&self, guest: Option<i32>) -> Result<Signalled, Errno> {
        match self.0.read_signal() {
            Ok(Some(heard)) if heard.ssi_signo == Signal::SIGTERM as u32 => {
                // Everything in our namespace but ourselves; nobody there is fine, too.
                let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
                Ok(Signalled::Other)
            }
            Ok(Some(heard)) if heard.ssi_signo == Signal::SIGINT as u32 => Ok(Signalled::Interrupt),
            Ok(_) | Err(Errno::EINTR) => Ok(bury(guest).map_or(Signalled::Other, Signalled::Ended)),
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reaps all that have ended, orphans included.
fn bury(guest: Option<i32>) -> Option<i32> {
    loop {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let ended = waitid(Id::All, flags).ok()?.pid()?.as_raw();
        let status = sys::wait_status(ended)?;
        if Some(ended) == guest {
            return Some(status);
        }
    }
}
