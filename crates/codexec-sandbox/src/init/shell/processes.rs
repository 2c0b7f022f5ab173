//! The guest's processes, as the first of them sees them.

use std::collections::BTreeMap;
use std::fs;

/// By process id.
#[derive(Debug, Default)]
pub(super) struct Processes(BTreeMap<i32, Process>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    parent: i32,
    /// In ticks: an id may be used again.
    start: u64,
    state: u8,
}

const FIRST: i32 = 1;

impl Processes {
    /// None where there is no view of processes.
    pub(super) fn now() -> Processes {
        let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        Processes(ids.filter_map(|id| Some((id, Process::read(id)?))).collect())
    }

    /// Every process that is new since `before`, but for the shell and for what a process of
    /// before has started.
    pub(super) fn new_since(&self, before: &Processes, shell: i32) -> Vec<(i32, Process)> {
        let new = self.0.iter().filter(|(id, _)| self.is_new(**id, before, shell));
        new.map(|(id, process)| (*id, *process)).collect()
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
    pub(super) fn read(id: i32) -> Option<Process> {
        let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name in parentheses may hold anything; what follows its end is regular.
        let (_, after) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = after.split(' ').collect();
        Some(Process {
            parent: fields.get(1)?.parse().ok()?,
            start: fields.get(19)?.trim().parse().ok()?,
            state: fields.first()?.bytes().next()?,
        })
    }

    /// Stopped, or dead.
    pub(super) fn is_at_rest(self) -> bool {
        matches!(self.state, b'T' | b't' | b'Z' | b'X')
    }
}

#[cfg(test)]
mod tests;
