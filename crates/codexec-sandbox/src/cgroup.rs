//! THREAT[RES-2]: limits on a whole process tree, where the kernel offers them: cgroup v2, v1, or
//! a hybrid of both. All of this runs in the host, never in a guest's process.

mod counters;
mod gauge;
mod hierarchy;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use counters::GroupCounters;
pub use gauge::MemoryGauge;
pub use hierarchy::CgroupsUnavailable;
use hierarchy::{CgroupVersion, Hierarchy};

/// Factory for cgroups. They lie below one directory per hierarchy, named after this process's id.
#[derive(Clone, Debug)]
pub struct Cgroups(Arc<CgroupPool>);

/// The cgroup of one slot. A dropped cgroup is reused, because creating and removing a cgroup
/// takes longer than a guest's whole life.
#[derive(Debug)]
pub struct SlotCgroup {
    base: Arc<CgroupPool>,
    number: u32,
    gauge: MemoryGauge,
    counters: GroupCounters,
}

#[derive(Debug)]
struct CgroupPool {
    hierarchy: Hierarchy,
    free: Mutex<Vec<u32>>,
    made: AtomicU32,
}

impl Cgroups {
    /// Finds the cgroup hierarchies and creates our own directory in each.
    pub fn find() -> Result<Cgroups, CgroupsUnavailable> {
        let hierarchy = Hierarchy::find()?;
        hierarchy.remove_leftovers();
        hierarchy.make_base()?;
        let (free, made) = (Mutex::default(), 0.into());
        Ok(Cgroups(Arc::new(CgroupPool { hierarchy, free, made })))
    }

    /// Kills all processes in the cgroups and removes the cgroups. No cgroup can be created
    /// afterwards. Blocks.
    ///
    /// THREAT[RES-11]: leaves no directories behind that would pile up from server to server.
    pub fn close(&self) {
        self.0.remove();
    }

    /// Returns the cgroup version, for people.
    pub fn version(&self) -> &'static str {
        match self.0.hierarchy.version() {
            CgroupVersion::V2 => "cgroup v2",
            CgroupVersion::V1 => "cgroup v1",
        }
    }

    pub fn create_group(&self, memory_bytes: u64, processes: u32) -> io::Result<SlotCgroup> {
        let made = || self.0.made.fetch_add(1, Ordering::Relaxed);
        let number = self.0.take_free().unwrap_or_else(made);
        match self.0.prepare(number, memory_bytes, processes) {
            Ok(gauge) => {
                let counters = GroupCounters::open(&self.0.hierarchy, number);
                Ok(SlotCgroup { base: Arc::clone(&self.0), number, gauge, counters })
            }
            Err(error) => {
                self.0.free().push(number);
                Err(error)
            }
        }
    }
}

impl SlotCgroup {
    /// Moves a process into the cgroup. Its future children start inside.
    pub fn add_process(&self, pid: i32) -> io::Result<()> {
        for directory in self.directories() {
            write(&directory.join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    /// Changes the memory limit. Fails if the cgroup uses more than that.
    pub fn limit_memory(&self, memory_bytes: u64) -> io::Result<()> {
        let limits = self.base.hierarchy.memory_limits(self.number, memory_bytes);
        limits.iter().try_for_each(|(file, value)| write(file, value))
    }

    /// Counts how often the OOM killer has killed a process of this cgroup.
    pub fn oom_kills(&self) -> u64 {
        self.counters.oom_kills()
    }

    /// Counts how often a fork failed because of the limit on processes and threads.
    pub fn refused_processes(&self) -> u64 {
        self.counters.refused_processes()
    }

    /// Returns a gauge of the cgroup's memory. A gauge that outlives its [`SlotCgroup`] reads the
    /// memory of the cgroup's next user.
    pub fn gauge(&self) -> MemoryGauge {
        self.gauge.clone()
    }

    /// Returns the peak memory since the last [`SlotCgroup::reset_peak`], if the kernel reports it.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        self.counters.peak_memory_bytes()
    }

    pub fn reset_peak(&self) {
        self.counters.reset_peak();
    }

    fn directories(&self) -> impl Iterator<Item = PathBuf> {
        self.base.hierarchy.directories(self.number)
    }
}

impl Drop for SlotCgroup {
    fn drop(&mut self) {
        self.base.free().push(self.number);
    }
}

impl CgroupPool {
    fn prepare(&self, number: u32, memory_bytes: u64, processes: u32) -> io::Result<MemoryGauge> {
        for directory in self.hierarchy.directories(number) {
            match fs::create_dir(&directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        for (file, value) in self.hierarchy.limits(number, memory_bytes, processes) {
            write(&file, &value)?;
        }
        MemoryGauge::open(&self.hierarchy.memory_directory(number), self.hierarchy.version())
    }

    /// Takes a dropped cgroup that has no processes left.
    fn take_free(&self) -> Option<u32> {
        let mut free = self.free();
        let is_empty = |number: u32| {
            let mut files = self.hierarchy.directories(number).map(|dir| dir.join("cgroup.procs"));
            files.all(|file| fs::read(file).is_ok_and(|processes| processes.is_empty()))
        };
        let at = free.iter().position(|number| is_empty(*number))?;
        Some(free.swap_remove(at))
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long killed processes may take to leave their cgroups.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(4);

impl CgroupPool {
    /// Kills the remaining processes and removes all cgroups. Does nothing the second time.
    #[expect(clippy::disallowed_methods, reason = "a cgroup gives no event when it becomes empty")]
    fn remove(&self) {
        let until = Instant::now() + REMOVE_TIMEOUT;
        while !self.hierarchy.remove_base() && Instant::now() < until {
            self.hierarchy.kill_all();
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for CgroupPool {
    fn drop(&mut self) {
        self.remove();
    }
}

fn write(file: &Path, value: &str) -> io::Result<()> {
    fs::write(file, value)
}
