//! THREAT[RES-2]: limits on a whole tree of processes, wherever the kernel offers them: cgroup v2, v1, or the
//! hybrid of both. All on the host's side: nothing here runs in a guest's process.

mod gauge;
mod place;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use gauge::MemoryGauge;
pub use place::NoCgroups;
use place::{Kind, Place};

/// Makes groups below one directory per hierarchy that bears this process's id.
#[derive(Clone, Debug)]
pub struct Cgroups(Arc<Base>);

/// One group that bounds one slot. Handed back when dropped, and used again: making and
/// removing groups costs more than a guest's whole life.
#[derive(Debug)]
pub struct Group {
    base: Arc<Base>,
    number: u32,
    gauge: MemoryGauge,
}

#[derive(Debug)]
struct Base {
    place: Place,
    free: Mutex<Vec<u32>>,
    made: AtomicU32,
}

impl Cgroups {
    /// Finds out what there is by making our own directory in it.
    pub fn find() -> Result<Cgroups, NoCgroups> {
        let place = Place::find()?;
        place.remove_leftovers();
        place.make_base()?;
        let (free, made) = (Mutex::default(), 0.into());
        Ok(Cgroups(Arc::new(Base { place, free, made })))
    }

    /// Removes all groups, and ends whatever is in them. No group can be made afterwards. Blocks.
    ///
    /// THREAT[RES-11]: a directory that stays is one more that the next server finds.
    pub fn close(&self) {
        self.0.remove();
    }

    /// For people: which kind was found.
    pub fn kind(&self) -> &'static str {
        match self.0.place.kind() {
            Kind::V2 => "cgroup v2",
            Kind::V1 => "cgroup v1",
        }
    }

    pub fn group(&self, memory_bytes: u64, processes: u32) -> io::Result<Group> {
        let made = || self.0.made.fetch_add(1, Ordering::Relaxed);
        let number = self.0.take_free().unwrap_or_else(made);
        match self.0.prepare(number, memory_bytes, processes) {
            Ok(gauge) => Ok(Group { base: Arc::clone(&self.0), number, gauge }),
            Err(error) => {
                self.0.free().push(number);
                Err(error)
            }
        }
    }
}

impl Group {
    /// Moves a process in; what it forks from now on is born inside.
    pub fn admit(&self, pid: i32) -> io::Result<()> {
        for directory in self.directories() {
            write(&directory.join("cgroup.procs"), &pid.to_string())?;
        }
        Ok(())
    }

    /// Changes how much memory the group may have. Fails where the group holds more.
    pub fn limit_memory(&self, memory_bytes: u64) -> io::Result<()> {
        let limits = self.base.place.memory_limits(self.number, memory_bytes);
        limits.iter().try_for_each(|(file, value)| write(file, value))
    }

    /// How often the kernel has killed a process of this group for want of memory.
    pub fn oom_kills(&self) -> u64 {
        number_after("oom_kill ", &self.base.place.oom_file(self.number))
    }

    /// How often a process or thread could not be started because there were too many.
    pub fn refused_processes(&self) -> u64 {
        number_after("max ", &self.base.place.pids_file(self.number))
    }

    /// Returns the gauge of the group's memory. It may outlive the group, which is used again then.
    pub fn gauge(&self) -> MemoryGauge {
        self.gauge.clone()
    }

    /// The most memory that it has held since the last [`Group::forget_peak`], where the kernel
    /// can tell.
    pub fn peak_memory_bytes(&self) -> Option<u64> {
        fs::read_to_string(self.base.place.peak_file(self.number)?).ok()?.trim().parse().ok()
    }

    pub fn forget_peak(&self) {
        if let Some(file) = self.base.place.peak_file(self.number) {
            let _ = fs::write(file, "0");
        }
    }

    fn directories(&self) -> impl Iterator<Item = PathBuf> {
        self.base.place.directories(self.number)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.base.free().push(self.number);
    }
}

impl Base {
    fn prepare(&self, number: u32, memory_bytes: u64, processes: u32) -> io::Result<MemoryGauge> {
        for directory in self.place.directories(number) {
            match fs::create_dir(&directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        for (file, value) in self.place.limits(number, memory_bytes, processes) {
            write(&file, &value)?;
        }
        MemoryGauge::open(&self.place.memory_directory(number), self.place.kind())
    }

    /// A group that was given back and whose processes are gone.
    fn take_free(&self) -> Option<u32> {
        let mut free = self.free();
        let is_empty = |number: u32| {
            let mut files = self.place.directories(number).map(|dir| dir.join("cgroup.procs"));
            files.all(|file| fs::read(file).is_ok_and(|processes| processes.is_empty()))
        };
        let at = free.iter().position(|number| is_empty(*number))?;
        Some(free.swap_remove(at))
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long the processes of all groups may take to be gone after they were killed.
const LAST: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(4);

impl Base {
    /// Kills what is still inside, and removes all groups. Does nothing when they are removed.
    #[expect(clippy::disallowed_methods, reason = "a cgroup gives no event when it becomes empty")]
    fn remove(&self) {
        let until = Instant::now() + LAST;
        while !self.place.remove_base() && Instant::now() < until {
            self.place.kill_all();
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The number behind this word, at the beginning of a line; 0 if there is none. One read gives the
/// whole file: this is done after every cell.
fn number_after(word: &str, file: &Path) -> u64 {
    let mut room = [0; 8192];
    let read = fs::File::open(file).and_then(|mut file| file.read(&mut room));
    let text = room.get(..read.unwrap_or_default()).unwrap_or_default();
    let text = std::str::from_utf8(text).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(word));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

fn write(file: &Path, value: &str) -> io::Result<()> {
    fs::write(file, value)
}
