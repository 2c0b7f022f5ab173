//! The rules of retention: what is removed by age and by total size, and when the clock is doubted.
//!
//! A store removes log lines before rows. If a pass is interrupted, the next one repeats it, because
//! everything that still has a row is still due.

pub(crate) mod files;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant, SystemTime};

/// How long executions and sessions are kept, and how much space they may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// The age limit of successful executions.
    pub success: Duration,
    /// The age limit of all other executions.
    pub failure: Duration,
    /// The age limit of sessions and their executions, from the session's end on.
    pub session: Duration,
    /// The limit on everything together; the oldest executions are removed first.
    pub max_bytes: u64,
}

/// The result of one pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RetentionReport {
    pub executions: u64,
    pub sessions: u64,
    /// Log files that were removed entirely.
    pub log_files: u64,
    /// Folders of artifacts.
    pub artifacts: u64,
    /// True if more is due than one pass removes.
    pub is_more: bool,
    /// True if the clock is implausible. Nothing was removed then.
    pub is_doubtful: bool,
}

/// The maximum number of executions per pass. A wrong clock must not remove everything before
/// anyone notices.
pub(crate) const PASS_EXECUTIONS: usize = 10_000;

/// The clock has jumped if it differs from the elapsed time by more than this.
const MAX_CLOCK_JUMP: Duration = Duration::from_secs(24 * 60 * 60);

/// If the newest execution is older than this, the first pass of a server doubts the clock.
const MAX_GAP: Duration = Duration::from_secs(365 * 24 * 60 * 60);

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Default for Retention {
    fn default() -> Retention {
        let (month, quarter) = (DAY * 30, DAY * 90);
        Retention { success: month, failure: quarter, session: quarter, max_bytes: 4 << 30 }
    }
}

/// Returns the reason why the clock is implausible, if it is.
pub(crate) fn find_clock_problem(
    before: Option<(Instant, SystemTime)>,
    now: SystemTime,
    newest: Option<SystemTime>,
) -> Option<String> {
    let distance =
        |a: SystemTime, b: SystemTime| a.duration_since(b).or_else(|_| b.duration_since(a));
    match before {
        Some((then, clock)) => {
            let expected = clock.checked_add(then.elapsed())?;
            let jump = distance(now, expected).unwrap_or_default();
            (jump > MAX_CLOCK_JUMP)
                .then(|| format!("the clock has jumped by {} hours", hours(jump)))
        }
        None => {
            let gap = now.duration_since(newest?).unwrap_or_default();
            (gap > MAX_GAP)
                .then(|| format!("by the clock the newest execution is {} hours old", hours(gap)))
        }
    }
}

fn hours(duration: Duration) -> u64 {
    duration.as_secs() / 3_600
}
