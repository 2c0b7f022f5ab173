//! Where this process may make cgroups.

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// Why there are no cgroups to be had. Guests then run under rlimits alone, and the posture
/// says so.
#[derive(Debug, thiserror::Error)]
pub enum NoCgroups {
    #[error("no cgroup hierarchy with memory and pids controllers is mounted")]
    NotMounted,
    #[error("cannot make a cgroup below {}: {source}", .at.display())]
    Forbidden {
        at: PathBuf,
        #[source]
        source: io::Error,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    V2,
    V1,
}

/// The directories that bear our process id, one per hierarchy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    kind: Kind,
    memory: PathBuf,
    /// The same as `memory` on v2.
    pids: PathBuf,
}

/// Process ids mean something only in their own namespace, so that is part of the name.
fn prefix() -> String {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("codexec-{digits}-")
}

impl Place {
    pub(super) fn find() -> Result<Place, NoCgroups> {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let (mounts, own) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup"));
        let has_controllers = |directory: &Path| {
            let text = fs::read_to_string(directory.join("cgroup.controllers"));
            let text = text.unwrap_or_default();
            ["memory", "pids"].iter().all(|wanted| text.split_whitespace().any(|c| c == *wanted))
        };
        let mut name = format!("{}{}", prefix(), std::process::id());
        // Whoever has a second one in the same process must not share groups with the first.
        static FOUND: AtomicU32 = AtomicU32::new(0);
        let before = FOUND.fetch_add(1, Ordering::Relaxed);
        if before > 0 {
            name.push_str(&format!(".{before}"));
        }
        choose(&mounts, &own, has_controllers, &name).ok_or(NoCgroups::NotMounted)
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    pub(super) fn make_base(&self) -> Result<(), NoCgroups> {
        for base in self.bases() {
            let forbidden = |source| NoCgroups::Forbidden { at: base.clone(), source };
            match fs::create_dir(&base) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(forbidden(error));
                }
                Ok(()) | Err(_) => {}
            }
            if self.kind == Kind::V2 {
                let file = base.join("cgroup.subtree_control");
                fs::write(file, "+memory +pids").map_err(forbidden)?;
            }
        }
        Ok(())
    }

    /// Whether nothing of it is left.
    pub(super) fn remove_base(&self) -> bool {
        self.bases().all(|base| remove(&base))
    }

    /// Kills every process in the groups below our own directories.
    pub(super) fn kill_all(&self) {
        for base in self.bases() {
            for entry in fs::read_dir(&base).into_iter().flatten().flatten() {
                kill_members(&entry.path().join("cgroup.procs"));
            }
        }
    }

    /// Removes what servers that are dead have left behind.
    pub(super) fn remove_leftovers(&self) {
        let prefix = prefix();
        for base in self.bases() {
            let Some(entries) = base.parent().and_then(|parent| fs::read_dir(parent).ok()) else {
                continue;
            };
            for entry in entries.flatten() {
                let name = entry.file_name();
                let pid = name.to_str().and_then(|name| name.strip_prefix(&prefix));
                let pid = pid.and_then(|rest| rest.split('.').next());
                let is_dead = |pid: &str| {
                    pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()
                };
                if pid.is_some_and(is_dead) {
                    remove(&entry.path());
                }
            }
        }
    }

    pub(super) fn directories(&self, number: u32) -> impl Iterator<Item = PathBuf> {
        self.bases().map(move |base| base.join(number.to_string()))
    }

    pub(super) fn oom_file(&self, number: u32) -> PathBuf {
        let file = match self.kind {
            Kind::V2 => "memory.events",
            Kind::V1 => "memory.oom_control",
        };
        self.memory.join(number.to_string()).join(file)
    }

    pub(super) fn pids_file(&self, number: u32) -> PathBuf {
        self.pids.join(number.to_string()).join("pids.events")
    }

    pub(super) fn memory_directory(&self, number: u32) -> PathBuf {
        self.memory.join(number.to_string())
    }

    /// On v2 the peak cannot be forgotten for everybody, so it says nothing about one guest.
    pub(super) fn peak_file(&self, number: u32) -> Option<PathBuf> {
        let directory = self.memory.join(number.to_string());
        (self.kind == Kind::V1).then(|| directory.join("memory.max_usage_in_bytes"))
    }

    /// Files and what to write into them.
    pub(super) fn limits(
        &self,
        number: u32,
        memory_bytes: u64,
        processes: u32,
    ) -> Vec<(PathBuf, String)> {
        let mut files = self.memory_limits(number, memory_bytes);
        let pids = self.pids.join(number.to_string());
        files.push((pids.join("pids.max"), processes.to_string()));
        files
    }

    /// The same for memory alone. On v1 the swap file is there only with swap accounting.
    pub(super) fn memory_limits(&self, number: u32, memory_bytes: u64) -> Vec<(PathBuf, String)> {
        let memory = self.memory.join(number.to_string());
        let (limit, swap, no_swap) = match self.kind {
            Kind::V2 => ("memory.max", "memory.swap.max", 0),
            Kind::V1 => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", memory_bytes),
        };
        let mut files = vec![(memory.join(limit), memory_bytes.to_string())];
        let swap = memory.join(swap);
        if swap.exists() {
            // On v1 a group that is used again gets no more memory than it may have with swap.
            if let Kind::V1 = self.kind {
                files.insert(0, (swap.clone(), "-1".to_owned()));
            }
            files.push((swap, no_swap.to_string()));
        }
        files
    }

    fn bases(&self) -> impl Iterator<Item = PathBuf> {
        let second = (self.pids != self.memory).then(|| self.pids.clone());
        std::iter::once(self.memory.clone()).chain(second)
    }
}

/// A process may end, and its id be another's, at any time: only one that is still a member after
/// we have hold of it is killed.
fn kill_members(procs: &Path) {
    let members = || -> Vec<u32> {
        let text = fs::read_to_string(procs).unwrap_or_default();
        text.lines().filter_map(|pid| pid.parse().ok()).collect()
    };
    for pid in members() {
        let Ok(pidfd) = sys::open_process(pid) else { continue };
        if members().contains(&pid) {
            let _ = sys::kill(pidfd.as_fd());
        }
    }
}

/// Removes a group and the groups in it. Fails, harmlessly, while a process is inside.
fn remove(directory: &Path) -> bool {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
    fs::remove_dir(directory).is_ok() || !directory.exists()
}

/// A hierarchy as `/proc/self/mountinfo` tells it.
struct Mounted<'a> {
    root: &'a str,
    at: &'a Path,
    kind: Kind,
    options: &'a str,
}

fn choose(
    mountinfo: &str,
    own: &str,
    has_controllers: impl Fn(&Path) -> bool,
    name: &str,
) -> Option<Place> {
    let mounted: Vec<Mounted<'_>> = mountinfo.lines().filter_map(mounted).collect();
    let v1 = |controller: &str| {
        let hierarchy = mounted.iter().find(|m| {
            m.kind == Kind::V1 && m.options.split(',').any(|option| option == controller)
        })?;
        let path = own.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|c| c == controller).then_some(path)
        })?;
        Some(below(hierarchy, path)?.join(name))
    };
    if let (Some(memory), Some(pids)) = (v1("memory"), v1("pids")) {
        return Some(Place { kind: Kind::V1, memory, pids });
    }
    let v2 = mounted.iter().find(|m| m.kind == Kind::V2)?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let own = below(v2, path)?;
    if !has_controllers(&own) {
        return None;
    }
    // Beside our own group: a group with processes in it cannot hand controllers to children.
    let parent = if own == v2.at { own.as_path() } else { own.parent()? };
    let memory = parent.join(name);
    Some(Place { kind: Kind::V2, pids: memory.clone(), memory })
}

fn mounted(line: &str) -> Option<Mounted<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, at) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let kind = match after.next()? {
        "cgroup2" => Kind::V2,
        "cgroup" => Kind::V1,
        _ => return None,
    };
    Some(Mounted { root, at: Path::new(at), kind, options: after.nth(1)? })
}

/// The directory of the group `path`, where the hierarchy is mounted from its group `root`.
fn below(hierarchy: &Mounted<'_>, path: &str) -> Option<PathBuf> {
    let inside = match hierarchy.root {
        "/" => path,
        root => path.strip_prefix(root)?,
    };
    Some(hierarchy.at.join(inside.trim_start_matches('/')))
}

#[cfg(test)]
mod tests;
