//! File timestamps, and how to tell changes before a run from changes after its start.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs::{self, MemfdFlags};
use rustix::time::{ClockId, clock_gettime};

/// A timestamp of the kernel's file clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    seconds: i64,
    nanoseconds: i64,
}

/// Magic numbers of file systems whose timestamps never lag behind a finer one that the kernel has
/// issued.
const FINE: [u32; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];

impl Moment {
    pub(crate) fn new(seconds: i64, nanoseconds: impl TryInto<i64>) -> Moment {
        Moment { seconds, nanoseconds: nanoseconds.try_into().unwrap_or(0) }
    }

    /// Returns a moment that is later than the timestamp of every change so far in this directory's
    /// file system, and not later than that of any future change.
    ///
    /// Timestamps come from a clock that ticks every few milliseconds. Linux 6.13 and newer issues
    /// a finer timestamp to a file that was queried before it changed, and no later timestamp is
    /// earlier. Elsewhere this function waits for the next tick.
    pub(crate) fn after_all_changes(directory: BorrowedFd<'_>) -> io::Result<Moment> {
        let is_fine = fs::fstatfs(directory)
            .is_ok_and(|about| FINE.iter().any(|magic| i64::from(*magic) == fs_type(&about)));
        if is_fine && let Some(moment) = fine()? {
            return Ok(moment);
        }
        let before = clock(ClockId::RealtimeCoarse);
        while clock(ClockId::RealtimeCoarse) == before {
            tick();
        }
        Ok(Moment { nanoseconds: before.nanoseconds + 1, ..before })
    }
}

impl From<Moment> for rustix::fs::Timespec {
    fn from(moment: Moment) -> rustix::fs::Timespec {
        rustix::fs::Timespec { tv_sec: moment.seconds, tv_nsec: moment.nanoseconds }
    }
}

#[expect(clippy::useless_conversion, reason = "the field's type differs between processors")]
fn fs_type(about: &fs::StatFs) -> i64 {
    i64::from(about.f_type)
}

#[expect(clippy::disallowed_methods, reason = "this clock tells nobody when it goes on")]
fn tick() {
    std::thread::sleep(Duration::from_micros(500));
}

/// Returns `None` if the kernel has no fine timestamps.
fn fine() -> io::Result<Option<Moment>> {
    let file = fs::memfd_create("moment", MemfdFlags::CLOEXEC)?;
    fs::fstat(&file)?;
    let before = clock(ClockId::Realtime);
    rustix::io::write(&file, b".")?;
    let stat = fs::fstat(&file)?;
    let stamp = Moment::new(stat.st_ctime, stat.st_ctime_nsec);
    Ok((stamp >= before).then_some(stamp))
}

fn clock(id: ClockId) -> Moment {
    let now = clock_gettime(id);
    Moment { seconds: now.tv_sec, nanoseconds: now.tv_nsec }
}

#[cfg(test)]
mod tests;
