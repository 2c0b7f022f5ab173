//! Stops all processes of a guest at once, so that the host can read their files or kill some of
//! them while nothing changes.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use codexec_sandbox::GuestProcess;

use crate::process_tree::list_tree;

/// Timeout for all processes to have stopped. On a busy host they need a while, and a process in a
/// disk wait stops only after the disk has answered.
const FREEZE_TIMEOUT: Duration = Duration::from_secs(2);

/// Timeout for finding processes to stop, while others start new ones.
const STOP_TIMEOUT: Duration = Duration::from_millis(200);

/// Finds and stops the processes of one guest. Cheap to clone, so that it can be moved into a
/// blocking thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Freezer {
    /// The roots of the process tree with their start times, because process ids are reused.
    roots: Vec<(i32, u64)>,
}

/// The stopped processes of a guest. Dropping this resumes them; if the host dies, the keeper kills
/// them.
#[derive(Debug, Default)]
pub(crate) struct FrozenProcesses {
    members: HashMap<i32, FrozenProcess>,
}

#[derive(Debug)]
struct FrozenProcess {
    process: GuestProcess,
    stat: ProcStat,
    /// False for a process that the guest stopped itself. It stays stopped.
    is_stopped_by_us: bool,
    /// The context switches of its threads, once all have stopped.
    switches: u64,
}

/// The fields of `/proc/PID/stat` that are needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProcStat {
    state: u8,
    parent: i32,
    /// In ticks since boot.
    start: u64,
}

impl Freezer {
    /// Creates a freezer for the process trees below these roots. The first root is init, which is
    /// ours and is never stopped.
    pub(crate) fn new(roots: &[i32]) -> Freezer {
        let start = |pid: &i32| Some((*pid, ProcStat::read(&format!("/proc/{pid}/stat"))?.start));
        Freezer { roots: roots.iter().filter_map(start).collect() }
    }

    /// Stops every process of the guest, and returns when all have stopped. Needs no cgroup.
    /// Blocks, usually for less than 0.1 ms: call it in a blocking thread. Fails if a process does not stop in time; all are then
    /// resumed.
    ///
    /// A guest can arm a timer that wakes a stopped process: a caller that depends on the freeze
    /// checks [`FrozenProcesses::is_still`] afterwards.
    pub(crate) fn freeze(&self) -> io::Result<FrozenProcesses> {
        let deadline = Instant::now() + FREEZE_TIMEOUT;
        let mut frozen = FrozenProcesses::default();
        loop {
            let is_complete = !self.stop_more(&mut frozen);
            if is_complete && frozen.have_all_stopped() {
                return Ok(frozen);
            }
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::yield_now();
        }
    }

    /// Sends SIGSTOP to every process of the guest until no new ones appear. Afterwards none of
    /// them starts a process, but the last system call of each may still be in progress.
    pub(crate) fn stop_all(&self) -> FrozenProcesses {
        let deadline = Instant::now() + STOP_TIMEOUT;
        let mut frozen = FrozenProcesses::default();
        while self.stop_more(&mut frozen) && Instant::now() < deadline {}
        frozen
    }

    /// Stops the processes that are not stopped yet. Returns `true` if there were any.
    fn stop_more(&self, frozen: &mut FrozenProcesses) -> bool {
        let known = |(pid, start): &(i32, u64)| {
            let stat = ProcStat::read(&format!("/proc/{pid}/stat"))?;
            (stat.start == *start).then_some(*pid)
        };
        let roots: Vec<i32> = self.roots.iter().filter_map(known).collect();
        let init = self.roots.first().map(|(pid, _)| *pid);
        let mut has_more = false;
        for pid in list_tree(&roots).into_iter().filter(|pid| Some(*pid) != init) {
            if frozen.members.contains_key(&pid) {
                continue;
            }
            let Ok(process) = GuestProcess::open(pid) else { continue };
            // Read after the process is held: if the id was reused in between, the parent differs.
            let Some(stat) = ProcStat::read(&format!("/proc/{pid}/stat")) else { continue };
            let is_parent_known = Some(stat.parent) == init
                || roots.contains(&pid)
                || frozen.members.contains_key(&stat.parent);
            if !is_parent_known {
                continue;
            }
            let is_stopped_by_us = stat.state != b'T';
            if is_stopped_by_us {
                process.stop();
            }
            frozen
                .members
                .insert(pid, FrozenProcess { process, stat, is_stopped_by_us, switches: 0 });
            has_more = true;
        }
        has_more
    }
}

impl FrozenProcesses {
    /// Kills the processes that started at this tick or later, with their descendants. Children of
    /// an older process belong to it and are kept, and so is `main`.
    pub(crate) fn kill_since(&self, tick: u64, main: i32) {
        for (pid, member) in &self.members {
            if *pid != main && self.is_started_since(*pid, tick, main) {
                member.process.kill();
            }
        }
    }

    /// Resumes one process.
    pub(crate) fn resume(&self, pid: i32) {
        if let Some(member) = self.members.get(&pid) {
            member.process.resume();
        }
    }

    /// True if a process has a handler for SIGINT.
    pub(crate) fn catches_interrupt(&self, pid: i32) -> bool {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        self.members.contains_key(&pid) && caught.is_some_and(|caught| caught & SIGINT_BIT != 0)
    }

    /// Sends one process SIGINT, which it handles first when it is resumed.
    pub(crate) fn interrupt(&self, pid: i32) {
        if let Some(member) = self.members.get(&pid) {
            member.process.interrupt();
        }
    }

    /// Kills one process.
    pub(crate) fn kill(&self, pid: i32) {
        if let Some(member) = self.members.get(&pid) {
            member.process.kill();
        }
    }

    fn is_started_since(&self, pid: i32, tick: u64, main: i32) -> bool {
        let mut next = pid;
        // Bounds the walk: no process is deeper than the number of processes.
        for _ in 0..=self.members.len() {
            match self.members.get(&next) {
                Some(_) if next == main => return true,
                Some(member) if member.stat.start < tick => return false,
                Some(member) => next = member.stat.parent,
                None => return true,
            }
        }
        true
    }

    /// True if no process has run since the freeze.
    pub(crate) fn is_still(&self) -> bool {
        self.members.iter().all(|(pid, member)| {
            count_switches_if_stopped(*pid).is_none_or(|now| now == member.switches)
        })
    }

    /// True if all processes have stopped. Records their context switches.
    fn have_all_stopped(&mut self) -> bool {
        for (pid, member) in &mut self.members {
            match count_switches_if_stopped(*pid) {
                Some(RUNNING) => return false,
                Some(switches) => member.switches = switches,
                // The process has exited.
                None => {}
            }
        }
        true
    }
}

impl Drop for FrozenProcesses {
    fn drop(&mut self) {
        for member in self.members.values().filter(|member| member.is_stopped_by_us) {
            member.process.resume();
        }
    }
}

/// SIGINT is number 2.
const SIGINT_BIT: u64 = 1 << 1;

/// Replaces the number of switches if a thread of the process is running.
const RUNNING: u64 = u64::MAX;

/// Returns the context switches of a process's threads if all have stopped, `RUNNING` if not, and
/// `None` if the process is gone.
fn count_switches_if_stopped(pid: i32) -> Option<u64> {
    let mut switches = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let Ok(status) = fs::read(task.path().join("status")) else { continue };
        let status = String::from_utf8_lossy(&status);
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let state = field("State:\t").and_then(|state| state.bytes().next());
        if !matches!(state, Some(b'T' | b't' | b'Z' | b'X')) {
            return Some(RUNNING);
        }
        for name in ["voluntary_ctxt_switches:\t", "nonvoluntary_ctxt_switches:\t"] {
            switches += field(name).and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Some(switches)
}

impl ProcStat {
    fn read(path: &str) -> Option<ProcStat> {
        let line = fs::read(path).ok()?;
        let line = String::from_utf8_lossy(&line);
        // The name in parentheses may hold anything; what follows its end is regular.
        let (_, after) = line.rsplit_once(") ")?;
        let mut fields = after.split(' ');
        let state = fields.next()?.bytes().next()?;
        let parent = fields.next()?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(ProcStat { state, parent, start })
    }
}

/// Returns the current tick, in the unit of process start times in `/proc`.
pub(crate) fn current_tick() -> u64 {
    const TICKS_PER_SECOND: u64 = 100;
    let since_boot = codexec_sandbox::time_since_boot();
    u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX) / (1_000 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests;
