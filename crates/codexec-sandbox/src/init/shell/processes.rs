//! The guest's processes, as the first of them sees them.

use std::collections::BTreeMap;
use std::fs;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// By process id.
#[derive(Debug, Default)]
pub(super) struct Processes(BTreeMap<i32, Process>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: i32,
    /// In ticks: an id may be used again.
    start: u64,
}

const FIRST: i32 = 1;

impl Processes {
    /// None where there is no view of processes.
    pub(super) fn now() -> Processes {
        let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        Processes(ids.filter_map(|id| Some((id, Process::read(id)?))).collect())
    }

    /// Interrupts every process that is new since `before`, but for the shell and for what a
    /// process of before has started; one that was `told` before is killed. A shell goes on after a
    /// program that was killed, and not after one that was interrupted.
    ///
    /// `true` if there was one to kill.
    pub(super) fn stop_new(&self, before: &Processes, told: &mut Processes, shell: i32) -> bool {
        let mut is_killing = false;
        for (id, process) in self.0.iter().filter(|(id, _)| self.is_new(**id, before, shell)) {
            let is_told = told.0.insert(*id, *process) == Some(*process);
            is_killing |= is_told;
            let signal = if is_told { Signal::SIGKILL } else { Signal::SIGINT };
            // It may have ended.
            let _ = kill(Pid::from_raw(*id), signal);
        }
        is_killing
    }

    fn is_new(&self, id: i32, before: &Processes, shell: i32) -> bool {
        let mut next = id;
        // Nobody is deeper than there are processes.
        for _ in 0..=self.0.len() {
            if next == FIRST || next == shell {
                return next != id;
            }
            let Some(process) = self.0.get(&next) else { return true };
            let is_old = before.0.get(&next).is_some_and(|known| known.start == process.start);
            if is_old {
                return false;
            }
            next = process.parent;
        }
        true
    }
}

impl Process {
    fn read(id: i32) -> Option<Process> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may hold anything; what follows its end is regular.
        let (_, after) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = after.split(' ').collect();
        Some(Process {
            parent: fields.get(1)?.parse().ok()?,
            start: fields.get(19)?.trim().parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests;
