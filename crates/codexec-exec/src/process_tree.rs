//! Measures a whole process tree from the host. Serves as the limit where the kernel limits only
//! single processes, or lets us set no limit.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use crate::memory::MemoryMeter;

/// Maximum number of a guest's processes that are remembered.
const MAX_SEEN: usize = 100_000;

/// The resources that a process tree has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeUsage {
    pub(crate) cpu: Duration,
    pub(crate) memory_bytes: u64,
}

/// Some processes of a session, with their `/proc` files kept open: they are read after every cell,
/// and opening takes longer than reading.
#[derive(Default)]
pub(crate) struct ProcessStats {
    times: Vec<ProcFile>,
    memory: Option<ProcFile>,
}

impl ProcessStats {
    pub(crate) fn new(pids: &[i32]) -> ProcessStats {
        ProcessStats {
            times: pids.iter().filter_map(|pid| ProcFile::open(*pid, "stat")).collect(),
            memory: pids.last().and_then(|pid| ProcFile::open(*pid, "status")),
        }
    }

    /// Returns the CPU time of these processes and the memory of the last one, without their
    /// children.
    pub(crate) fn measure(&self) -> TreeUsage {
        let times = self.times.iter().filter_map(CpuTime::parse);
        let cpu = times.map(|time| time.own + time.reaped).sum();
        TreeUsage { cpu, memory_bytes: self.memory.as_ref().map_or(0, own_memory_bytes) }
    }
}

/// The process tree of a guest, given by its roots.
pub(crate) struct TreeWatch {
    roots: Vec<i32>,
    /// The CPU time of every process seen so far, by id and start time. The kernel does not report
    /// the time of a child that nobody waits for.
    seen: HashMap<(i32, u64), Duration>,
    /// The processes of the last measurement.
    last: Vec<i32>,
    /// The usage by `last`, if the measurement before found the same processes.
    settled: Option<ProcessStats>,
}

impl TreeWatch {
    pub(crate) fn new(roots: Vec<i32>) -> TreeWatch {
        TreeWatch { roots, seen: HashMap::new(), last: Vec::new(), settled: None }
    }

    /// Returns the usage if the processes have not changed lately. Reading a whole tree costs as
    /// much as a short cell, and most trees do not change.
    pub(crate) fn measure_if_settled(&self) -> Option<TreeUsage> {
        self.settled.as_ref().map(ProcessStats::measure)
    }

    pub(crate) fn measure(&mut self, meter: &MemoryMeter) -> TreeUsage {
        let tree = list_tree(&self.roots);
        if tree != self.last {
            self.settled = None;
        } else if self.settled.is_none() {
            self.settled = Some(ProcessStats::new(&tree));
        }
        let mut with_reaped = Duration::ZERO;
        for pid in &tree {
            let Some(time) = ProcFile::open(*pid, "stat").and_then(|file| CpuTime::parse(&file))
            else {
                continue;
            };
            with_reaped += time.own + time.reaped;
            if self.seen.len() < MAX_SEEN {
                self.seen.insert((*pid, time.start), time.own);
            }
        }
        let cpu = with_reaped.max(self.seen.values().sum());
        self.last = tree;
        TreeUsage { cpu, memory_bytes: meter.held_bytes() }
    }
}

/// Returns the roots and all their descendants. Orphans become children of their namespace's init,
/// which is a root, so none is missed.
pub(crate) fn list_tree(roots: &[i32]) -> Vec<i32> {
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
struct CpuTime {
    /// The start time in ticks, because process ids are reused.
    start: u64,
    own: Duration,
    /// The time of the children that the process has waited for.
    reaped: Duration,
}

impl CpuTime {
    fn parse(stat: &ProcFile) -> Option<CpuTime> {
        let mut buffer = [0; PROC_FILE_BYTES];
        let stat = stat.read(&mut buffer)?;
        // The name in parentheses may contain anything; the fields after it are regular.
        let (_, after) = stat.rsplit_once(") ")?;
        let mut fields = after.split(' ').skip(11).map(|field| field.parse::<u64>().unwrap_or(0));
        let mut ticks = || Some(fields.next()? + fields.next()?);
        let (own, reaped) = (ticks()?, ticks()?);
        let start = fields.nth(4)?;
        let time = |ticks: u64| Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND);
        Some(CpuTime { start, own: time(own), reaped: time(reaped) })
    }
}

/// True for every Linux that we support.
const TICKS_PER_SECOND: u64 = 100;

/// Returns a short file of `/proc` about a process; empty if the process is gone.
pub(crate) fn read_proc_file(pid: i32, file: &str) -> String {
    let mut buffer = [0; PROC_FILE_BYTES];
    let proc_file = ProcFile::open(pid, file);
    proc_file.and_then(|file| Some(file.read(&mut buffer)?.into_owned())).unwrap_or_default()
}

fn own_memory_bytes(status: &ProcFile) -> u64 {
    let mut buffer = [0; PROC_FILE_BYTES];
    let status = status.read(&mut buffer).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    (field("RssAnon:").unwrap_or(0) + field("RssShmem:").unwrap_or(0)) * 1024
}

/// More than the kernel writes into such a file.
const PROC_FILE_BYTES: usize = 4096;

/// An open file of `/proc/<pid>`, which never refers to a later process with the same id.
struct ProcFile(File);

impl ProcFile {
    fn open(pid: i32, file: &str) -> Option<ProcFile> {
        File::open(format!("/proc/{pid}/{file}")).ok().map(ProcFile)
    }

    /// Returns the contents, with a single read.
    ///
    /// THREAT[RES-2]: a guest chooses the name of its process, which appears in these files and
    /// need not be UTF-8. The process is counted all the same.
    fn read<'a>(&self, buffer: &'a mut [u8; PROC_FILE_BYTES]) -> Option<Cow<'a, str>> {
        let bytes = self.0.read_at(buffer, 0).ok()?;
        Some(String::from_utf8_lossy(buffer.get(..bytes)?))
    }
}

#[cfg(test)]
mod tests;
