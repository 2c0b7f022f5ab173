//! The counters of one cgroup that are read for every guest.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::hierarchy::Hierarchy;

/// The counters of one cgroup. Their files stay open, because opening one takes longer than reading
/// it. A counter that the kernel does not have is 0.
#[derive(Debug)]
pub(super) struct GroupCounters {
    oom: Option<File>,
    pids: Option<File>,
    peak: Option<File>,
}

/// More than the length of any of these files.
const COUNTER_BYTES: usize = 1024;

impl GroupCounters {
    pub(super) fn open(hierarchy: &Hierarchy, number: u32) -> GroupCounters {
        let open_peak = |path| File::options().read(true).write(true).open(path).ok();
        GroupCounters {
            oom: File::open(hierarchy.oom_file(number)).ok(),
            pids: File::open(hierarchy.pids_file(number)).ok(),
            peak: hierarchy.peak_file(number).and_then(open_peak),
        }
    }

    pub(super) fn oom_kills(&self) -> u64 {
        number_after("oom_kill ", self.oom.as_ref())
    }

    pub(super) fn refused_processes(&self) -> u64 {
        number_after("max ", self.pids.as_ref())
    }

    pub(super) fn peak_memory_bytes(&self) -> Option<u64> {
        read(self.peak.as_ref()?, &mut [0; COUNTER_BYTES]).trim().parse().ok()
    }

    pub(super) fn reset_peak(&self) {
        if let Some(peak) = &self.peak {
            let _ = peak.write_at(b"0", 0);
        }
    }
}

/// Returns the number after `word` at the start of a line, or 0.
fn number_after(word: &str, file: Option<&File>) -> u64 {
    let mut buffer = [0; COUNTER_BYTES];
    let text = file.map_or("", |file| read(file, &mut buffer));
    let line = text.lines().find_map(|line| line.strip_prefix(word));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// Returns the current text of a file, with one system call.
fn read<'a>(file: &File, buffer: &'a mut [u8; COUNTER_BYTES]) -> &'a str {
    let count = file.read_at(buffer, 0).unwrap_or_default();
    std::str::from_utf8(buffer.get(..count).unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
