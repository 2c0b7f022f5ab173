//! What a whole tree of processes uses, seen from the host: where the kernel has a limit for
//! single processes only, or none that we may set, this is the limit.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use crate::memory::Meter;

/// How many processes of one guest are remembered.
const MAX_SEEN: usize = 100_000;

/// What a tree has used up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) cpu: Duration,
    pub(crate) memory_bytes: u64,
}

/// Some processes of a session. What the kernel tells about them stays open: it is read after every
/// cell, and to open it takes longer than to read it.
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

    /// What these have used, and what the last of them holds; their children not.
    pub(crate) fn used(&self) -> Used {
        let times = self.times.iter().filter_map(Time::of);
        let cpu = times.map(|time| time.own + time.buried).sum();
        Used { cpu, memory_bytes: self.memory.as_ref().map_or(0, own_memory_bytes) }
    }
}

/// A guest's processes, by the ones that all others descend from.
pub(crate) struct Watch {
    roots: Vec<i32>,
    /// The own time of every process that was seen, by its id and start. Of a child that nobody
    /// waits for, the kernel tells nobody else.
    seen: HashMap<(i32, u64), Duration>,
    /// Who was there at the last look.
    last: Vec<i32>,
    /// Those, if the same were there the time before.
    settled: Option<Roots>,
}

impl Watch {
    pub(crate) fn new(roots: Vec<i32>) -> Watch {
        Watch { roots, seen: HashMap::new(), last: Vec::new(), settled: None }
    }

    /// What they have used where nobody came or went lately. To look at a tree costs as much as a
    /// short cell, and most have the same processes all the time.
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

/// These and all their descendants. An orphan is a child of the first process of its namespace,
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

/// The time of a process.
struct Time {
    /// When it began, in ticks: an id may be used again.
    start: u64,
    own: Duration,
    /// Of the children that it has waited for.
    buried: Duration,
}

impl Time {
    fn of(stat: &About) -> Option<Time> {
        let mut room = [0; ABOUT_BYTES];
        let stat = stat.read(&mut room)?;
        // The name in parentheses may hold anything; what follows its end is regular.
        let (_, after) = stat.rsplit_once(") ")?;
        let mut fields = after.split(' ').skip(11).map(|field| field.parse::<u64>().unwrap_or(0));
        let mut ticks = || Some(fields.next()? + fields.next()?);
        let (own, buried) = (ticks()?, ticks()?);
        let start = fields.nth(4)?;
        let time = |ticks: u64| Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND);
        Some(Time { start, own: time(own), buried: time(buried) })
    }
}

/// On every Linux that we run on.
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

/// Longer than what the kernel tells about a process.
const ABOUT_BYTES: usize = 4096;

/// What the kernel tells about one process, and never about another that has its id later.
struct About(File);

impl About {
    fn open(pid: i32, file: &str) -> Option<About> {
        File::open(format!("/proc/{pid}/{file}")).ok().map(About)
    }

    /// One read gives all of it.
    ///
    /// THREAT[RES-2]: a guest chooses the name of its process, which stands in there and need not
    /// be UTF-8. It is counted all the same.
    fn read<'a>(&self, room: &'a mut [u8; ABOUT_BYTES]) -> Option<Cow<'a, str>> {
        let bytes = self.0.read_at(room, 0).ok()?;
        Some(String::from_utf8_lossy(room.get(..bytes)?))
    }
}

#[cfg(test)]
mod tests;
