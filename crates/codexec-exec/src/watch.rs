//! What a whole tree of processes uses, seen from the host: where the kernel has a limit for
//! single processes only, or none that we may set, this is the limit.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use codexec_sandbox::Group;

/// How many processes of one guest are remembered.
const MAX_SEEN: usize = 100_000;

/// What a tree has used up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) cpu: Duration,
    pub(crate) memory_bytes: u64,
}

impl Used {
    /// What these have used, and what the last of them holds; their children not.
    pub(crate) fn of(roots: &[i32]) -> Used {
        let times = roots.iter().filter_map(|pid| Time::of(*pid));
        let cpu = times.map(|time| time.own + time.buried).sum();
        Used { cpu, memory_bytes: roots.last().map_or(0, |pid| own_memory_bytes(*pid)) }
    }
}

/// A guest's processes, by the ones that all others descend from.
pub(crate) struct Watch {
    roots: Vec<i32>,
    /// What a process of its kind has in memory before it does anything: mostly shared.
    base_bytes: u64,
    /// The own time of every process that was seen, by its id and start. Of a child that nobody
    /// waits for, the kernel tells nobody else.
    seen: HashMap<(i32, u64), Duration>,
    /// How many processes there were at the last look.
    count: usize,
}

impl Watch {
    pub(crate) fn new(roots: Vec<i32>) -> Watch {
        let base_bytes = roots.last().map_or(0, |pid| own_memory_bytes(*pid));
        Watch { roots, base_bytes, seen: HashMap::new(), count: 0 }
    }

    /// Whether there was nothing but the roots at the last look.
    pub(crate) fn is_alone(&self) -> bool {
        self.count == self.roots.len()
    }

    pub(crate) fn used(&mut self, group: Option<&Group>) -> Used {
        let tree = tree(&self.roots);
        self.count = tree.len();
        let mut with_buried = Duration::ZERO;
        for pid in &tree {
            let Some(time) = Time::of(*pid) else { continue };
            with_buried += time.own + time.buried;
            if self.seen.len() < MAX_SEEN {
                self.seen.insert((*pid, time.start), time.own);
            }
        }
        let cpu = with_buried.max(self.seen.values().sum());
        let own = |pid: &i32| own_memory_bytes(*pid).saturating_sub(self.base_bytes);
        let memory_bytes = match group {
            Some(group) => group.own_memory_bytes(),
            None => tree.iter().map(own).sum(),
        };
        Used { cpu, memory_bytes }
    }
}

/// These and all their descendants. An orphan is a child of the first process of its namespace,
/// which is a root, so none is missed.
fn tree(roots: &[i32]) -> Vec<i32> {
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
    fn of(pid: i32) -> Option<Time> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in parentheses may hold anything; what follows its end is regular.
        let (_, after) = stat.rsplit_once(") ")?;
        let fields: Vec<u64> = after.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
        let &[user, system, child_user, child_system] = fields.get(11..15)? else { return None };
        let time = |ticks: u64| Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND);
        let (own, buried) = (time(user + system), time(child_user + child_system));
        Some(Time { start: *fields.get(19)?, own, buried })
    }
}

/// On every Linux that we run on.
const TICKS_PER_SECOND: u64 = 100;

fn own_memory_bytes(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    (field("RssAnon:").unwrap_or(0) + field("RssShmem:").unwrap_or(0)) * 1024
}
