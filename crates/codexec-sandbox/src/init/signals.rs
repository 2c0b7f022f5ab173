use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;

use crate::sys;

/// What process 1 hears: that a child has ended, or that the host wants the guest to end.
pub(super) struct Signals(SignalFd);

impl Signals {
    pub(super) fn new() -> Result<Signals, Errno> {
        let mut heard = SigSet::empty();
        heard.add(Signal::SIGCHLD);
        heard.add(Signal::SIGTERM);
        heard.thread_block()?;
        SignalFd::with_flags(&heard, SfdFlags::SFD_CLOEXEC).map(Signals)
    }

    /// Waits for the next signal. `Some` with the wait status once `guest` has ended.
    pub(super) fn next(&self, guest: Option<i32>) -> Result<Option<i32>, Errno> {
        match self.0.read_signal() {
            Ok(Some(heard)) if heard.ssi_signo == Signal::SIGTERM as u32 => {
                // Everything in our namespace but ourselves; nobody there is fine, too.
                let _ = nix::sys::signal::kill(Pid::from_raw(-1), Signal::SIGTERM);
                Ok(None)
            }
            Ok(_) | Err(Errno::EINTR) => Ok(bury(guest)),
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
