//! Stopping a cell.
//!
//! THREAT[SES-9]: not one more command starts. The shell is stopped first, by a signal that
//! nothing holds up, and then everything that the cell has started; only when all of it stands
//! still is that killed. The shell comes back with a signal pending whose trap drops what it was
//! doing, and cannot start a process until it has said that it is at its prompt again.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::PATIENCE;
use super::processes::{Process, Processes};
use crate::init::guest::catches;
use crate::sys;

/// Our own id, in a namespace that is the guest's alone.
const FIRST: u32 = 1;

/// The signal that the driver's trap for stopping is set on: RTMAX, which scripts do not use.
const STOP: i32 = 64;

/// When a shell that has not stopped is told again, after it was told first. What it is told waits
/// in a queue of ten packets.
const ROUNDS: [Duration; 3] =
    [Duration::from_millis(30), Duration::from_millis(120), Duration::from_millis(400)];

/// A cell that stands still. What it has started is dead.
pub(super) struct FrozenCell {
    shell: i32,
}

/// A shell on its way back to its prompt.
pub(super) struct Stopping {
    shell: i32,
    since: Instant,
    insisted: usize,
    /// How many processes it may have, once it is there.
    processes: Option<libc::rlimit>,
}

/// Stops the shell and the cell's processes, and kills the latter. `None` if the shell cannot be
/// brought back: it has given up the trap, or does not even stop.
pub(super) fn freeze(shell: i32, before: &Processes) -> Option<FrozenCell> {
    if std::process::id() != FIRST {
        // Where the layer `pid` is lowered, what is new may be anybody's.
        return None;
    }
    let deadline = Instant::now() + PATIENCE;
    signal(shell, Signal::SIGSTOP);
    while !Process::read(shell).is_none_or(Process::is_at_rest) {
        if Instant::now() > deadline {
            return None;
        }
        std::thread::yield_now();
    }
    loop {
        let now = Processes::now();
        let cell = now.new_since(before, shell);
        if cell.iter().all(|(_, process)| process.is_at_rest()) {
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
    catches(shell, STOP).then_some(FrozenCell { shell })
}

/// Where it cannot go on, nothing of it does.
pub(super) fn kill_shell(shell: i32) {
    signal(shell, Signal::SIGKILL);
}

impl FrozenCell {
    /// Lets the shell go on, to its prompt.
    pub(super) fn interrupt(self) -> Stopping {
        let FrozenCell { shell } = self;
        let processes = sys::allow_no_processes(shell).ok();
        sys::raise(shell, STOP);
        signal(shell, Signal::SIGCONT);
        Stopping { shell, since: Instant::now(), insisted: 0, processes }
    }
}

impl Stopping {
    /// When to insist, if it is not back by then.
    pub(super) fn next_round(&self) -> Option<Instant> {
        ROUNDS.get(self.insisted).map(|after| self.since + *after)
    }

    pub(super) fn insist(&mut self) {
        self.insisted += 1;
        sys::raise(self.shell, STOP);
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        if let Some(processes) = self.processes {
            let _ = sys::allow_processes(self.shell, processes);
        }
    }
}

fn signal(id: i32, signal: Signal) {
    // It may have ended.
    let _ = kill(Pid::from_raw(id), signal);
}
