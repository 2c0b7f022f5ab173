//! File timestamps, and how to tell changes before a run from changes after its start.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs::{self, MemfdFlags};
use rustix::time::{ClockId, clock_gettime};

/// A timestamp of the kernel's file clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileTime {
    seconds: i64,
    nanoseconds: i64,
}

/// Magic numbers of file systems whose timestamps never lag behind a finer one that the kernel has
/// issued.
const FINE_TIME_MAGICS: [u32; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];

impl FileTime {
    pub(crate) fn new(seconds: i64, nanoseconds: impl TryInto<i64>) -> FileTime {
        FileTime { seconds, nanoseconds: nanoseconds.try_into().unwrap_or(0) }
    }

    /// Returns a moment that is later than the timestamp of every change so far in this directory's
    /// file system, and not later than that of any future change.
    ///
    /// Timestamps come from a clock that ticks every few milliseconds. Linux 6.13 and newer issues
    /// a finer timestamp to a file that was queried before it changed, and no later timestamp is
    /// earlier. Elsewhere this function waits for the next tick.
    pub(crate) fn after_all_changes(directory: BorrowedFd<'_>) -> io::Result<FileTime> {
        let is_fine = fs::fstatfs(directory).is_ok_and(|about| {
            FINE_TIME_MAGICS.iter().any(|magic| i64::from(*magic) == fs_type(&about))
        });
        if is_fine && let Some(moment) = read_fine_time()? {
            return Ok(moment);
        }
        // No timestamp so far is later than this, be it fine or coarse.
        let now = read_clock(ClockId::Realtime);
        while read_clock(ClockId::RealtimeCoarse) <= now {
            sleep_a_tick();
        }
        Ok(FileTime { nanoseconds: now.nanoseconds + 1, ..now })
    }
}

impl From<FileTime> for rustix::fs::Timespec {
    fn from(moment: FileTime) -> rustix::fs::Timespec {
        rustix::fs::Timespec { tv_sec: moment.seconds, tv_nsec: moment.nanoseconds }
    }
}

#[expect(clippy::useless_conversion, reason = "the field's type differs between processors")]
fn fs_type(about: &fs::StatFs) -> i64 {
    i64::from(about.f_type)
}

#[expect(clippy::disallowed_methods, reason = "this clock tells nobody when it goes on")]
fn sleep_a_tick() {
    std::thread::sleep(Duration::from_micros(500));
}

/// Returns `None` if the kernel has no fine timestamps, or if another processor issued one at the
/// same moment.
fn read_fine_time() -> io::Result<Option<FileTime>> {
    let file = fs::memfd_create("moment", MemfdFlags::CLOEXEC)?;
    fs::fstat(&file)?;
    let before = read_clock(ClockId::Realtime);
    rustix::io::write(&file, b".")?;
    let stat = fs::fstat(&file)?;
    let stamp = FileTime::new(stat.st_ctime, stat.st_ctime_nsec);
    Ok((stamp >= before).then_some(stamp))
}

fn read_clock(id: ClockId) -> FileTime {
    let now = clock_gettime(id);
    FileTime { seconds: now.tv_sec, nanoseconds: now.tv_nsec }
}

#[cfg(test)]
mod tests;
