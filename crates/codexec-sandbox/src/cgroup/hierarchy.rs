//! The cgroup hierarchies in which this process may create cgroups.

use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// The reason why cgroups are not available. Guests then run under rlimits alone, and the posture
/// says so.
#[derive(Debug, thiserror::Error)]
pub enum CgroupsUnavailable {
    #[error("no cgroup hierarchy with memory and pids controllers is mounted")]
    NotMounted,
    #[error("cannot create a cgroup below {}: {source}", .at.display())]
    Forbidden {
        at: PathBuf,
        #[source]
        source: io::Error,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CgroupVersion {
    V2,
    V1,
}

/// Our own base directories, named after our process id: one per hierarchy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hierarchy {
    version: CgroupVersion,
    memory: PathBuf,
    /// The same as `memory` on v2.
    pids: PathBuf,
}

/// Returns the prefix of our directories' names. Process ids are unique only within their PID
/// namespace, so the prefix includes that.
fn name_prefix() -> String {
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits: String = namespace.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    format!("codexec-{digits}-")
}

impl Hierarchy {
    pub(super) fn find() -> Result<Hierarchy, CgroupsUnavailable> {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let (mounts, own) = (read("/proc/self/mountinfo"), read("/proc/self/cgroup"));
        let has_controllers = |directory: &Path| {
            let text = fs::read_to_string(directory.join("cgroup.controllers"));
            let text = text.unwrap_or_default();
            ["memory", "pids"].iter().all(|wanted| text.split_whitespace().any(|c| c == *wanted))
        };
        let mut name = format!("{}{}", name_prefix(), std::process::id());
        // A second instance in the same process must not share cgroups with the first.
        static INSTANCES: AtomicU32 = AtomicU32::new(0);
        let before = INSTANCES.fetch_add(1, Ordering::Relaxed);
        if before > 0 {
            name.push_str(&format!(".{before}"));
        }
        choose(&mounts, &own, has_controllers, &name).ok_or(CgroupsUnavailable::NotMounted)
    }

    pub(super) fn version(&self) -> CgroupVersion {
        self.version
    }

    pub(super) fn make_base(&self) -> Result<(), CgroupsUnavailable> {
        for base in self.bases() {
            let forbidden = |source| CgroupsUnavailable::Forbidden { at: base.clone(), source };
            match fs::create_dir(&base) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(forbidden(error));
                }
                Ok(()) | Err(_) => {}
            }
            if self.version == CgroupVersion::V2 {
                let file = base.join("cgroup.subtree_control");
                fs::write(file, "+memory +pids").map_err(forbidden)?;
            }
        }
        Ok(())
    }

    /// Removes the base directories. Returns true if none is left.
    pub(super) fn remove_base(&self) -> bool {
        self.bases().all(|base| remove(&base))
    }

    /// Kills every process in the cgroups below our base directories.
    pub(super) fn kill_all(&self) {
        for base in self.bases() {
            for entry in fs::read_dir(&base).into_iter().flatten().flatten() {
                kill_members(&entry.path().join("cgroup.procs"));
            }
        }
    }

    /// Removes the directories of dead servers.
    pub(super) fn remove_leftovers(&self) {
        let prefix = name_prefix();
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
        let file = match self.version {
            CgroupVersion::V2 => "memory.events",
            CgroupVersion::V1 => "memory.oom_control",
        };
        self.memory.join(number.to_string()).join(file)
    }

    pub(super) fn pids_file(&self, number: u32) -> PathBuf {
        self.pids.join(number.to_string()).join("pids.events")
    }

    pub(super) fn memory_directory(&self, number: u32) -> PathBuf {
        self.memory.join(number.to_string())
    }

    /// Returns the file with the peak memory. On v2 only the writer's own descriptor sees a reset
    /// peak, so the file says nothing about one guest.
    pub(super) fn peak_file(&self, number: u32) -> Option<PathBuf> {
        let directory = self.memory.join(number.to_string());
        (self.version == CgroupVersion::V1).then(|| directory.join("memory.max_usage_in_bytes"))
    }

    /// Returns the files that set the limits, each with its content.
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

    /// Returns the files that set the memory limits, each with its content. On v1 the swap file
    /// exists only with swap accounting.
    pub(super) fn memory_limits(&self, number: u32, memory_bytes: u64) -> Vec<(PathBuf, String)> {
        let memory = self.memory.join(number.to_string());
        let (limit, swap, no_swap) = match self.version {
            CgroupVersion::V2 => ("memory.max", "memory.swap.max", 0),
            CgroupVersion::V1 => {
                ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", memory_bytes)
            }
        };
        let mut files = vec![(memory.join(limit), memory_bytes.to_string())];
        let swap = memory.join(swap);
        if swap.exists() {
            // v1 rejects a memory limit above the swap limit, so a reused cgroup's swap limit is
            // lifted first.
            if let CgroupVersion::V1 = self.version {
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

/// Kills the processes listed in a `cgroup.procs` file. A process id may be reused at any time, so
/// membership is checked again after the pidfd is open.
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

/// Removes a cgroup and its children. Returns false while a process is inside.
fn remove(directory: &Path) -> bool {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
    fs::remove_dir(directory).is_ok() || !directory.exists()
}

/// A hierarchy's line in `/proc/self/mountinfo`.
struct MountedHierarchy<'a> {
    root: &'a str,
    at: &'a Path,
    version: CgroupVersion,
    options: &'a str,
}

fn choose(
    mountinfo: &str,
    own: &str,
    has_controllers: impl Fn(&Path) -> bool,
    name: &str,
) -> Option<Hierarchy> {
    let mounted: Vec<MountedHierarchy<'_>> = mountinfo.lines().filter_map(parse_mount).collect();
    let v1 = |controller: &str| {
        let hierarchy = mounted.iter().find(|m| {
            m.version == CgroupVersion::V1
                && m.options.split(',').any(|option| option == controller)
        })?;
        let path = own.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|c| c == controller).then_some(path)
        })?;
        Some(directory_of(hierarchy, path)?.join(name))
    };
    if let (Some(memory), Some(pids)) = (v1("memory"), v1("pids")) {
        return Some(Hierarchy { version: CgroupVersion::V1, memory, pids });
    }
    let v2 = mounted.iter().find(|m| m.version == CgroupVersion::V2)?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let own = directory_of(v2, path)?;
    if !has_controllers(&own) {
        return None;
    }
    // Next to our own cgroup: a cgroup with processes cannot delegate controllers to children.
    let parent = if own == v2.at { own.as_path() } else { own.parent()? };
    let memory = parent.join(name);
    Some(Hierarchy { version: CgroupVersion::V2, pids: memory.clone(), memory })
}

fn parse_mount(line: &str) -> Option<MountedHierarchy<'_>> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(3);
    let (root, at) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let version = match after.next()? {
        "cgroup2" => CgroupVersion::V2,
        "cgroup" => CgroupVersion::V1,
        _ => return None,
    };
    Some(MountedHierarchy { root, at: Path::new(at), version, options: after.nth(1)? })
}

/// Returns the directory of the cgroup `path`. The mount shows the hierarchy from its cgroup
/// `root` on.
fn directory_of(hierarchy: &MountedHierarchy<'_>, path: &str) -> Option<PathBuf> {
    let inside = match hierarchy.root {
        "/" => path,
        root => path.strip_prefix(root)?,
    };
    Some(hierarchy.at.join(inside.trim_start_matches('/')))
}

#[cfg(test)]
mod tests;
