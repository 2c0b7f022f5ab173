//! Stops a cell.
//!
//! THREAT[SES-9]: not one more command starts. SIGSTOP stops the shell first, and then every
//! process that the cell has started; only when all are stopped are those killed. The shell
//! resumes with a pending signal whose trap aborts the cell, and cannot fork until it has reported
//! that it is back at its prompt.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::SIGNAL_TIMEOUT;
use super::processes::{Process, ProcessTable};
use crate::init::guest::has_handler;
use crate::sys;

/// Our own process id, in a PID namespace that only this guest uses.
const FIRST: u32 = 1;

/// The signal of the driver's stop trap: RTMAX, which scripts do not use.
const STOP: i32 = 64;

/// When to signal a shell again that did not stop, counted from the first signal. Few enough that
/// the requests for reports fit into the shell's queue of ten packets.
const SIGNAL_AGAIN_AFTER: [Duration; 3] =
    [Duration::from_millis(30), Duration::from_millis(120), Duration::from_millis(400)];

/// A stopped cell. The processes that it has started are dead.
pub(super) struct FrozenCell {
    shell: i32,
}

/// A shell on its way back to its prompt.
pub(super) struct StoppingShell {
    shell: i32,
    since: Instant,
    signals_repeated: usize,
    /// The limit on processes to restore once the shell is at its prompt.
    process_limit: Option<libc::rlimit>,
}

/// Stops the shell and the cell's processes, and kills the latter. Returns `None` if the shell
/// cannot be brought back: it has removed the trap, or did not stop in time.
pub(super) fn freeze(shell: i32, before: &ProcessTable) -> Option<FrozenCell> {
    if std::process::id() != FIRST {
        // The layer `pid` is lowered, so new processes may belong to others.
        return None;
    }
    let deadline = Instant::now() + SIGNAL_TIMEOUT;
    signal(shell, Signal::SIGSTOP);
    while !Process::read(shell).is_none_or(Process::is_halted) {
        if Instant::now() > deadline {
            return None;
        }
        std::thread::yield_now();
    }
    loop {
        let now = ProcessTable::read();
        let cell = now.new_since(before, shell);
        if cell.iter().all(|(_, process)| process.is_halted()) {
            for (id, _) in cell {
                signal(id, Signal::SIGKILL);
            }
            break;
        }
        for (id, _) in cell {
            signal(id, Signal::SIGSTOP);
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::yield_now();
    }
    has_handler(shell, STOP).then_some(FrozenCell { shell })
}

pub(super) fn kill_shell(shell: i32) {
    signal(shell, Signal::SIGKILL);
}

impl FrozenCell {
    /// Resumes the shell, whose stop trap returns it to its prompt.
    pub(super) fn interrupt(self) -> StoppingShell {
        let FrozenCell { shell } = self;
        let process_limit = sys::forbid_forks(shell).ok();
        sys::send_signal(shell, STOP);
        signal(shell, Signal::SIGCONT);
        StoppingShell { shell, since: Instant::now(), signals_repeated: 0, process_limit }
    }
}

impl StoppingShell {
    /// Returns when to signal again, if the shell is not back by then.
    pub(super) fn next_signal_at(&self) -> Option<Instant> {
        SIGNAL_AGAIN_AFTER.get(self.signals_repeated).map(|after| self.since + *after)
    }

    pub(super) fn signal_again(&mut self) {
        self.signals_repeated += 1;
        sys::send_signal(self.shell, STOP);
    }
}

impl Drop for StoppingShell {
    fn drop(&mut self) {
        if let Some(limit) = self.process_limit {
            let _ = sys::set_process_limit(self.shell, limit);
        }
    }
}

fn signal(id: i32, signal: Signal) {
    // Fails if the process has ended.
    let _ = kill(Pid::from_raw(id), signal);
}
