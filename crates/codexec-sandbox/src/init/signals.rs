use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::sys;

/// The signals to init: a child has ended (SIGCHLD), or the host wants the guest to end (SIGTERM)
/// or to be interrupted (SIGINT).
pub(super) struct Signals(SignalFd);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalEvent {
    /// The guest's first process has ended, with this wait status.
    Ended(i32),
    Interrupt,
    Other,
}

impl Signals {
    pub(super) fn new() -> Result<Signals, Errno> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGCHLD);
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGINT);
        set.thread_block()?;
        SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC).map(Signals)
    }

    /// Returns the next signal, if one is pending.
    pub(super) fn try_next(&self, guest: Option<i32>) -> Result<Option<SignalEvent>, Errno> {
        let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::ZERO) {
            Ok(0) | Err(Errno::EINTR) => Ok(None),
            Ok(_) => self.next(guest).map(Some),
            Err(errno) => Err(errno),
        }
    }

    /// Waits for the next signal.
    pub(super) fn next(&self, guest: Option<i32>) -> Result<SignalEvent, Errno> {
        match self.0.read_signal() {
            Ok(Some(info)) if info.ssi_signo == Signal::SIGTERM as u32 => {
                // Signals everything in our PID namespace but ourselves. Fails if that is nothing.
                let _ = kill(Pid::from_raw(-1), Signal::SIGTERM);
                Ok(SignalEvent::Other)
            }
            Ok(Some(info)) if info.ssi_signo == Signal::SIGINT as u32 => Ok(SignalEvent::Interrupt),
            Ok(_) | Err(Errno::EINTR) => {
                Ok(reap(guest).map_or(SignalEvent::Other, SignalEvent::Ended))
            }
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reaps ended children, orphans included, until there are none left or the guest is reaped.
/// Returns the guest's wait status.
fn reap(guest: Option<i32>) -> Option<i32> {
    loop {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        let ended = waitid(Id::All, flags).ok()?.pid()?.as_raw();
        let status = sys::reap_status(ended)?;
        if Some(ended) == guest {
            return Some(status);
        }
    }
}
