//! Stopping all processes of a guest at once, so that the host can look at what they have left,
//! or end some of them, while nothing moves.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use codexec_sandbox::GuestProcess;

use crate::watch::tree;

/// How long processes may take to come to rest. A process that waits for a disk cannot be stopped
/// before it has what it waits for.
const PATIENCE: Duration = Duration::from_millis(200);

/// Finds and stops the processes of one guest. Cheap to clone, so that it can be moved into a
/// thread that blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Freezer {
    /// Those that all others descend from, and when each began: an id may be used again.
    roots: Vec<(i32, u64)>,
}

/// The processes of a guest while they stand still. Dropping it lets them go on; if the host dies,
/// the keeper kills them.
#[derive(Debug, Default)]
pub(crate) struct Frozen {
    members: HashMap<i32, Member>,
}

#[derive(Debug)]
struct Member {
    process: GuestProcess,
    stat: Stat,
    /// False for a process that the guest itself has stopped: it stays so.
    is_stopped_by_us: bool,
    /// How often its threads have given up the processor, once it rests.
    switches: u64,
}

/// A line of `/proc/PID/stat`, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: i32,
    /// In ticks since the machine began.
    start: u64,
}

impl Freezer {
    /// For the guest whose processes descend from these. The first is init, which is ours and is
    /// never stopped.
    pub(crate) fn new(roots: &[i32]) -> Freezer {
        let start = |pid: &i32| Some((*pid, Stat::read(&format!("/proc/{pid}/stat"))?.start));
        Freezer { roots: roots.iter().filter_map(start).collect() }
    }

    /// Stops every process of the guest, and returns when none of them runs any more. Needs no
    /// cgroup. Blocks, usually for less than a tenth of a millisecond, and fails when a process
    /// does not come to rest in time; they go on then.
    ///
    /// A guest can arm a timer that wakes a stopped process: whoever depends on the stillness asks
    /// [`Frozen::is_still`] afterwards.
    pub(crate) fn freeze(&self) -> io::Result<Frozen> {
        let deadline = Instant::now() + PATIENCE;
        let mut frozen = Frozen::default();
        loop {
            let is_complete = !self.stop_more(&mut frozen);
            if is_complete && frozen.rest() {
                return Ok(frozen);
            }
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::yield_now();
        }
    }

    /// Sends every process of the guest the signal to stop, until there are none that have not
    /// got it. None of them starts a process or a command after that, but the last system call
    /// of each may still be under way.
    pub(crate) fn stop_all(&self) -> Frozen {
        let deadline = Instant::now() + PATIENCE;
        let mut frozen = Frozen::default();
        while self.stop_more(&mut frozen) && Instant::now() < deadline {}
        frozen
    }

    /// Stops those that are not stopped yet. `true` if there were any.
    fn stop_more(&self, frozen: &mut Frozen) -> bool {
        let known = |(pid, start): &(i32, u64)| {
            let stat = Stat::read(&format!("/proc/{pid}/stat"))?;
            (stat.start == *start).then_some(*pid)
        };
        let roots: Vec<i32> = self.roots.iter().filter_map(known).collect();
        let init = self.roots.first().map(|(pid, _)| *pid);
        let mut has_more = false;
        for pid in tree(&roots).into_iter().filter(|pid| Some(*pid) != init) {
            if frozen.members.contains_key(&pid) {
                continue;
            }
            let Ok(process) = GuestProcess::open(pid) else { continue };
            // Read after the process is held: an id that was used again in between belongs to
            // somebody with another parent.
            let Some(stat) = Stat::read(&format!("/proc/{pid}/stat")) else { continue };
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
            frozen.members.insert(pid, Member { process, stat, is_stopped_by_us, switches: 0 });
            has_more = true;
        }
        has_more
    }
}

impl Frozen {
    /// Kills what began at this tick or later, with all that came of it. What an older process has
    /// started is that process's, and lives on; `main` does, too.
    pub(crate) fn kill_since(&self, tick: u64, main: i32) {
        for (pid, member) in &self.members {
            if *pid != main && self.is_since(*pid, tick, main) {
                member.process.kill();
            }
        }
    }

    /// Lets one of them go on.
    pub(crate) fn resume(&self, pid: i32) {
        if let Some(member) = self.members.get(&pid) {
            member.process.resume();
        }
    }

    /// Whether a process has a handler for what [`Frozen::interrupt`] sends.
    pub(crate) fn catches_interrupt(&self, pid: i32) -> bool {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        self.members.contains_key(&pid) && caught.is_some_and(|caught| caught & SIGINT_BIT != 0)
    }

    /// Interrupts one of them, as the first it does when it goes on.
    pub(crate) fn interrupt(&self, pid: i32) {
        if let Some(member) = self.members.get(&pid) {
            member.process.interrupt();
        }
    }

    /// Kills one of them, which does nothing more.
    pub(crate) fn kill(&self, pid: i32) {
        if let Some(member) = self.members.get(&pid) {
            member.process.kill();
        }
    }

    fn is_since(&self, pid: i32, tick: u64, main: i32) -> bool {
        let mut next = pid;
        // Nobody is deeper than there are processes.
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

    /// True if no process has run since they were frozen.
    pub(crate) fn is_still(&self) -> bool {
        self.members
            .iter()
            .all(|(pid, member)| tasks_at_rest(*pid).is_none_or(|now| now == member.switches))
    }

    /// True if none of them runs.
    fn rest(&mut self) -> bool {
        for (pid, member) in &mut self.members {
            match tasks_at_rest(*pid) {
                Some(RUNNING) => return false,
                Some(switches) => member.switches = switches,
                // Ended meanwhile.
                None => {}
            }
        }
        true
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for member in self.members.values().filter(|member| member.is_stopped_by_us) {
            member.process.resume();
        }
    }
}

/// SIGINT is number 2.
const SIGINT_BIT: u64 = 1 << 1;

/// In place of a count of switches, for a process of which a thread runs.
const RUNNING: u64 = u64::MAX;

/// How often the threads of a process have given up the processor, if all of them rest; `None` for
/// a process that is gone.
fn tasks_at_rest(pid: i32) -> Option<u64> {
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

impl Stat {
    fn read(path: &str) -> Option<Stat> {
        let line = fs::read(path).ok()?;
        let line = String::from_utf8_lossy(&line);
        // The name in parentheses may hold anything; what follows its end is regular.
        let (_, after) = line.rsplit_once(") ")?;
        let mut fields = after.split(' ');
        let state = fields.next()?.bytes().next()?;
        let parent = fields.next()?.parse().ok()?;
        let start = fields.nth(17)?.parse().ok()?;
        Some(Stat { state, parent, start })
    }
}

/// The tick of now, as `/proc` counts when processes begin.
pub(crate) fn tick_now() -> u64 {
    const TICKS_PER_SECOND: u64 = 100;
    let since_boot = codexec_sandbox::time_since_boot();
    u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX) / (1_000 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests;
