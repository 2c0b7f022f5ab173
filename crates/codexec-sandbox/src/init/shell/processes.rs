//! The guest's processes, read from `/proc` by init.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;

/// The processes of a guest by id.
#[derive(Debug, Default)]
pub(super) struct ProcessTable(BTreeMap<i32, Process>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    parent: i32,
    /// The start time in ticks, because an id may be reused.
    start: u64,
    state: u8,
}

const FIRST: i32 = 1;

impl ProcessTable {
    /// Reads the processes that earlier cells have left running, before a cell begins. Usually there
    /// is only the shell, which two short files show; neither init nor the shell is ever new, so an
    /// empty table says the same as one with both.
    pub(super) fn read_before_cell(shell: i32) -> ProcessTable {
        match has_only_child(FIRST, Some(shell)) && has_only_child(shell, None) {
            true => ProcessTable::default(),
            false => ProcessTable::read(),
        }
    }

    /// Reads all processes. The table is empty if there is no `/proc`.
    pub(super) fn read() -> ProcessTable {
        let ids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        ProcessTable(ids.filter_map(|id| Some((id, Process::read(id)?))).collect())
    }

    /// Returns every process that is new since `before`, except for the shell and for descendants
    /// of older processes.
    pub(super) fn new_since(&self, before: &ProcessTable, shell: i32) -> Vec<(i32, Process)> {
        let new = self.0.iter().filter(|(id, _)| self.is_new(**id, before, shell));
        new.map(|(id, process)| (*id, *process)).collect()
    }

    fn is_new(&self, id: i32, before: &ProcessTable, shell: i32) -> bool {
        let mut next = id;
        // No process is nested deeper than the number of processes.
        for _ in 0..=self.0.len() {
            if next == FIRST || next == shell {
                return next != id;
            }
            let Some(process) = self.0.get(&next) else { return true };
            let is_old = before.0.get(&next).is_some_and(|old| old.start == process.start);
            if is_old {
                return false;
            }
            next = process.parent;
        }
        true
    }
}

/// True if this is the only child of a process with one thread; with `None`, if it has no child.
/// False if the kernel does not tell.
fn has_only_child(id: i32, child: Option<i32>) -> bool {
    // Longer than one process id; a list that fills this has more than one.
    let mut buffer = [0; 32];
    let file = File::open(format!("/proc/{id}/task/{id}/children"));
    let Ok(count) = file.and_then(|mut file| file.read(&mut buffer)) else { return false };
    let list = std::str::from_utf8(buffer.get(..count).unwrap_or_default());
    let Ok(list) = list.map(str::trim_end) else { return false };
    match child {
        Some(child) => list == child.to_string(),
        None => list.is_empty(),
    }
}

impl Process {
    pub(super) fn read(id: i32) -> Option<Process> {
        let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name in parentheses may contain anything, so parsing starts after it.
        let (_, after) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = after.split(' ').collect();
        Some(Process {
            parent: fields.get(1)?.parse().ok()?,
            start: fields.get(19)?.trim().parse().ok()?,
            state: fields.first()?.bytes().next()?,
        })
    }

    /// Returns true if the process is stopped or dead.
    pub(super) fn is_halted(self) -> bool {
        matches!(self.state, b'T' | b't' | b'Z' | b'X')
    }
}

#[cfg(test)]
mod tests;
