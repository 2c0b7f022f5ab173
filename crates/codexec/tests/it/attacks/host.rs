//! The host's side of the evidence: processes, cgroups, memory, files, connections. Nothing here
//! believes what a guest says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::descendants;

pub(crate) use crate::support::within;

/// What SECURITY.md promises: nothing of a case is left this long after its answer.
pub(crate) const AFTERMATH: Duration = Duration::from_secs(2);

/// The longest that a test waits for what is not the case's own: a pool that fills up again, a
/// server that starts. A quiet host needs milliseconds; the tests of both users share two cores.
pub(crate) const SETTLING: Duration = Duration::from_secs(10);

/// The processes of the sandbox: the zygote's children keep slots, their children run guests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sandbox {
    pub(crate) keepers: BTreeSet<u32>,
    pub(crate) workers: BTreeSet<u32>,
    /// Whatever is below a worker.
    pub(crate) strays: BTreeSet<u32>,
}

impl Sandbox {
    /// Without the upstreams, which are the server's children too.
    pub(crate) fn of(server: u32) -> Sandbox {
        let is_zygote = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.ends_with(b"\0zygote-js\0")
        };
        let zygotes: BTreeSet<u32> =
            children(&[server].into()).into_iter().filter(is_zygote).collect();
        let keepers = children(&zygotes);
        let workers = children(&keepers);
        let strays = children(&workers);
        Sandbox { keepers, workers, strays }
    }
}

/// The processes below a server that live in a guest's process namespace. A zygote of programs has
/// a namespace of its own around those of its guests; our engine's has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Guests {
    /// The first process of each namespace.
    pub(crate) firsts: BTreeSet<u32>,
    /// All others: programs that run, and interpreters that wait.
    pub(crate) others: BTreeSet<u32>,
}

impl Guests {
    pub(crate) fn of(server: u32) -> Guests {
        let mut guests = Guests::default();
        for pid in descendants(server).into_iter().filter(|pid| is_alive(*pid)) {
            let ids = status(pid, "NSpid").unwrap_or_default();
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let around = if line.ends_with(b"\0zygote-js\0") { 1 } else { 2 };
            match ids.split_whitespace().skip(around).last() {
                None => {}
                Some("1") => drop(guests.firsts.insert(pid)),
                Some(_) => drop(guests.others.insert(pid)),
            }
        }
        guests
    }
}

/// One generation below these.
fn children(parents: &BTreeSet<u32>) -> BTreeSet<u32> {
    let all = parents.iter().flat_map(|pid| descendants(*pid));
    all.filter(|pid| parent(*pid).is_some_and(|parent| parents.contains(&parent))).collect()
}

fn parent(pid: u32) -> Option<u32> {
    status(pid, "PPid")?.parse().ok()
}

/// The processor time a process has used, in hundredths of a second.
pub(crate) fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(") ").map(|(_, after)| after).unwrap_or_default();
    after.split(' ').nth(11).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Root has cgroups; for others the kernel's own limits and our watch have to do.
pub(crate) fn is_root() -> bool {
    status(std::process::id(), "Uid").is_some_and(|ids| ids.starts_with('0'))
}

pub(crate) fn is_alive(pid: u32) -> bool {
    status(pid, "State").is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// The cgroup directories of this server, on every hierarchy.
pub(crate) fn cgroups(server: u32) -> Vec<PathBuf> {
    folders_of(Path::new("/sys/fs/cgroup"), server, 6)
}

/// How many groups this server has made in one hierarchy, used ones and those to be used again.
pub(crate) fn groups(server: u32) -> Option<usize> {
    let folders = |path: PathBuf| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).count()
    };
    cgroups(server).into_iter().map(folders).max()
}

/// Named after us, the process namespace and the server.
fn folders_of(at: &Path, server: u32, depth: u32) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(at) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()));
    let is_its = |name: &str| name.starts_with("codexec-") && name.ends_with(&format!("-{server}"));
    let found = |entry: std::fs::DirEntry| match depth {
        _ if entry.file_name().to_str().is_some_and(is_its) => vec![entry.path()],
        0 => Vec::new(),
        _ => folders_of(&entry.path(), server, depth - 1),
    };
    folders.flat_map(found).collect()
}

/// A line of `/proc/<pid>/status`, without its name.
pub(crate) fn status(pid: u32, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// Lets the peak of a process's memory start anew.
pub(crate) fn reset_peak(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("our own process");
}

pub(crate) fn memory_kib(pid: u32, name: &str) -> u64 {
    let text = status(pid, name).expect("a living process");
    text.trim_end_matches(" kB").parse().expect("a number")
}

/// Everything below a folder: path and length.
pub(crate) fn files(folder: &Path) -> BTreeSet<(PathBuf, u64)> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            let kind = entry.file_type().expect("a kind");
            if kind.is_dir() {
                folders.push(entry.path());
            }
            let length = entry.metadata().map_or(0, |metadata| metadata.len());
            found.insert((entry.path(), if kind.is_dir() { 0 } else { length }));
        }
    }
    found
}

pub(crate) fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// What this host has left, in KiB.
pub(crate) fn free_memory_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("readable");
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The mounts of ours that can be seen from here: there must never be one.
pub(crate) fn mounts() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/mountinfo").expect("readable");
    let is_ours = |line: &&str| line.contains(" - tmpfs box ") || line.contains(" - tmpfs room ");
    text.lines().filter(is_ours).map(ToOwned::to_owned).collect()
}

/// 32 characters that stand nowhere else.
pub(crate) fn secret() -> String {
    let uuid = std::fs::read_to_string("/proc/sys/kernel/random/uuid").expect("a random id");
    uuid.trim().replace('-', "")
}
