//! Measures a whole process tree from the host. Serves as the limit where the kernel limits only
//! single processes, or lets us set no limit.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use crate::memory::Meter;

/// Maximum number of a guest's processes that are remembered.
const MAX_SEEN: usize = 100_000;

/// The resources that a process tree has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) cpu: Duration,
    pub(crate) memory_bytes: u64,
}

/// Some processes of a session, with their `/proc` files kept open: they are read after every cell,
/// and opening takes longer than reading.
#[derive(Default)]
pub(crate) struct Roots {
    times: Vec<About>,
    memory: Option<About>,
}

impl Roots {
    pub(crate) fn new(pids: &[i32]) -> Roots {
        Roots {
            times: pids.iter().filter_map(|pid| About::open(*pid, "stat")).collect(),
            memory: pids.last().and_then(|pid| About::open(*pid, "status")),
        }
    }

    /// Returns the CPU time of these processes and the memory of the last one, without their
    /// children.
    pub(crate) fn used(&self) -> Used {
        let times = self.times.iter().filter_map(Time::of);
        let cpu = times.map(|time| time.own + time.buried).sum();
        Used { cpu, memory_bytes: self.memory.as_ref().map_or(0, own_memory_bytes) }
    }
}

/// The process tree of a guest, given by its roots.
pub(crate) struct Watch {
    roots: Vec<i32>,
    /// The CPU time of every process seen so far, by id and start time. The kernel does not report
    /// the time of a child that nobody waits for.
    seen: HashMap<(i32, u64), Duration>,
    /// The processes of the last measurement.
    last: Vec<i32>,
    /// Those processes, if they were also the ones of the measurement before.
    settled: Option<Roots>,
}

impl Watch {
    pub(crate) fn new(roots: Vec<i32>) -> Watch {
        Watch { roots, seen: HashMap::new(), last: Vec::new(), settled: None }
    }

    /// Returns the usage if the processes have not changed lately. Reading a whole tree costs as
    /// much as a short cell, and most trees do not change.
    pub(crate) fn used_if_settled(&self) -> Option<Used> {
        self.settled.as_ref().map(Roots::used)
    }

    pub(crate) fn used(&mut self, meter: &Meter) -> Used {
        let tree = tree(&self.roots);
        if tree != self.last {
            self.settled = None;
        } else if self.settled.is_none() {
            self.settled = Some(Roots::new(&tree));
        }
        let mut with_buried = Duration::ZERO;
        for pid in &tree {
            let Some(time) = About::open(*pid, "stat").and_then(|about| Time::of(&about)) else {
                continue;
            };
            with_buried += time.own + time.buried;
            if self.seen.len() < MAX_SEEN {
                self.seen.insert((*pid, time.start), time.own);
            }
        }
        let cpu = with_buried.max(self.seen.values().sum());
        self.last = tree;
        Used { cpu, memory_bytes: meter.held_bytes() }
    }
}

/// Returns the roots and all their descendants. Orphans become children of their namespace's init,
/// which is a root, so none is missed.
pub(crate) fn tree(roots: &[i32]) -> Vec<i32> {
    let mut found = roots.to_vec();
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
    }
    found
}

/// The CPU time of a process.
struct Time {
    /// The start time in ticks, because process ids are reused.
    start: u64,
    own: Duration,
    /// The time of the children that the process has waited for.
    buried: Duration,
}

impl Time {
    fn of(stat: &About) -> Option<Time> {
        let mut room = [0; ABOUT_BYTES];
        let stat = stat.read(&mut room)?;
        // The name in parentheses may contain anything; the fields after it are regular.
        let (_, after) = stat.rsplit_once(") ")?;
        let mut fields = after.split(' ').skip(11).map(|field| field.parse::<u64>().unwrap_or(0));
        let mut ticks = || Some(fields.next()? + fields.next()?);
        let (own, buried) = (ticks()?, ticks()?);
        let start = fields.nth(4)?;
        let time = |ticks: u64| Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND);
        Some(Time { start, own: time(own), buried: time(buried) })
    }
}

/// True for every Linux that we support.
const TICKS_PER_SECOND: u64 = 100;

/// Returns a short file of `/proc` about a process; empty if the process is gone.
pub(crate) fn about(pid: i32, file: &str) -> String {
    let mut room = [0; ABOUT_BYTES];
    let about = About::open(pid, file);
    about.and_then(|about| Some(about.read(&mut room)?.into_owned())).unwrap_or_default()
}

fn own_memory_bytes(status: &About) -> u64 {
    let mut room = [0; ABOUT_BYTES];
    let status = status.read(&mut room).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    (field("RssAnon:").unwrap_or(0) + field("RssShmem:").unwrap_or(0)) * 1024
}

/// More than the kernel writes into such a file.
const ABOUT_BYTES: usize = 4096;

/// An open file of `/proc/<pid>`, which never refers to a later process with the same id.
struct About(File);

impl About {
    fn open(pid: i32, file: &str) -> Option<About> {
        File::open(format!("/proc/{pid}/{file}")).ok().map(About)
    }

    /// Returns the contents, with a single read.
    ///
    /// THREAT[RES-2]: a guest chooses the name of its process, which appears in these files and
    /// need not be UTF-8. The process is counted all the same.
    fn read<'a>(&self, room: &'a mut [u8; ABOUT_BYTES]) -> Option<Cow<'a, str>> {
        let bytes = self.0.read_at(room, 0).ok()?;
        Some(String::from_utf8_lossy(room.get(..bytes)?))
    }
}

#[cfg(test)]
mod tests;
