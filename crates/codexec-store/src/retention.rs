//! How long things are kept, and how much of them.
//!
//! Lines go before rows, so that a pass that is broken off is simply done again: whatever still has
//! its row is still due.

mod due;
mod files;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use rusqlite::Connection;

use self::due::Due;
use crate::{
    database::Database,
    index::Index,
    journal::{self, JournalError},
    readers,
    savepoint::atomically,
};

/// What is kept, and how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Of executions that went well.
    pub success: Duration,
    /// Of all others.
    pub failure: Duration,
    /// Of sessions and their executions, from the session's end on.
    pub session: Duration,
    /// Of everything together; the oldest goes first.
    pub max_bytes: u64,
}

/// What one pass has removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    pub executions: u64,
    pub sessions: u64,
    /// Log files that were removed whole.
    pub log_files: u64,
    /// Folders of files that executions left.
    pub artifacts: u64,
    /// There is more to remove; the next pass goes on.
    pub is_more: bool,
    /// The clock cannot be believed, so nothing was removed.
    pub is_doubtful: bool,
}

/// A clock that jumps must not empty everything at once, before anybody sees it.
const PASS: usize = 10_000;

/// How many rows go in one transaction.
const GROUP: usize = 100;

/// A clock that moves by so much more or less than time has passed has jumped.
const JUMP: Duration = Duration::from_secs(24 * 60 * 60);

/// A server that finds nothing younger than this looks at the clock twice.
const GAP: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The passes of one server: one at a time, and each knows when the last was.
#[derive(Debug, Default)]
pub(crate) struct Pass(Mutex<Option<(Instant, SystemTime)>>);

impl Default for Retention {
    fn default() -> Retention {
        let (month, quarter) = (DAY * 30, DAY * 90);
        Retention { success: month, failure: quarter, session: quarter, max_bytes: 4 << 30 }
    }
}

impl Pass {
    pub(crate) fn run(
        &self,
        retention: &Retention,
        now: SystemTime,
        database: &Database,
        path: &Path,
    ) -> Result<Removed, JournalError> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.replace((Instant::now(), now));
        let reader = readers::open(path)?;
        if let Some(why) = doubt(before, now, due::newest(&reader)?) {
            tracing::warn!("{why}; nothing is removed until the next pass");
            return Ok(Removed { is_doubtful: true, ..Removed::default() });
        }
        let home = path.parent().unwrap_or(Path::new(".")).to_owned();
        let index = Index::beside(path);
        let removed = Removed::default();
        let mut work = Work { reader, index, database, home, removed };
        work.too_old(retention, now)?;
        work.too_much(retention.max_bytes)?;
        let removed = work.removed;
        if removed.is_more {
            let executions = removed.executions;
            tracing::warn!(executions, "more is due than one pass removes; the next goes on");
        }
        Ok(removed)
    }
}

/// Why the clock cannot be believed.
fn doubt(
    before: Option<(Instant, SystemTime)>,
    now: SystemTime,
    newest: Option<SystemTime>,
) -> Option<String> {
    let apart = |a: SystemTime, b: SystemTime| a.duration_since(b).or_else(|_| b.duration_since(a));
    match before {
        Some((then, clock)) => {
            let expected = clock.checked_add(then.elapsed())?;
            let jump = apart(now, expected).unwrap_or_default();
            (jump > JUMP).then(|| format!("the clock has jumped by {} hours", hours(jump)))
        }
        None => {
            let gap = now.duration_since(newest?).unwrap_or_default();
            (gap > GAP)
                .then(|| format!("by the clock the newest execution is {} hours old", hours(gap)))
        }
    }
}

fn hours(duration: Duration) -> u64 {
    duration.as_secs() / 3_600
}

struct Work<'a> {
    reader: Connection,
    index: Index,
    database: &'a Database,
    home: PathBuf,
    removed: Removed,
}

impl Work<'_> {
    fn too_old(&mut self, retention: &Retention, now: SystemTime) -> Result<(), JournalError> {
        let mut due = due::executions(&self.reader, retention, now, PASS + 1)?;
        self.removed.is_more = due.len() > PASS;
        due.truncate(PASS);
        self.remove(&due)?;
        for session in due::sessions(&self.reader, retention, now)? {
            self.remove_session(&session)?;
        }
        self.orphans(retention, now)
    }

    /// The oldest first, until the rest fits.
    fn too_much(&mut self, max_bytes: u64) -> Result<(), JournalError> {
        let step = PASS / 20;
        loop {
            let used = due::database_bytes(&self.reader)? + files::bytes(&self.home);
            if used <= max_bytes {
                return Ok(());
            }
            if self.removed.executions >= PASS as u64 {
                self.removed.is_more = true;
                return Ok(());
            }
            let oldest = due::oldest(&self.reader, step)?;
            if oldest.is_empty() {
                return Ok(());
            }
            self.remove(&oldest)?;
        }
    }

    fn remove(&mut self, due: &[Due]) -> Result<(), JournalError> {
        let mut files: BTreeMap<String, HashSet<String>> = BTreeMap::new();
        for one in due {
            files.entry(one.file()).or_default().insert(one.id.clone());
        }
        let logs = self.home.join("logs");
        for (name, ids) in files {
            // Held for one file at a time: entries wait meanwhile.
            let _alone = journal::lock(&logs)?;
            self.removed.log_files += u64::from(journal::without(&logs, &name, &ids)?);
        }
        for group in due.chunks(GROUP) {
            let seqs: Vec<i64> = group.iter().map(|one| one.seq).collect();
            for one in group {
                self.removed.artifacts += u64::from(files::remove_artifacts(&self.home, &one.id));
            }
            let ends: Vec<i64> = group.iter().map(|one| one.end_number).collect();
            self.index.remove(&ends)?;
            let mut open = self.database.lock();
            let removed = atomically(&open.conn, || due::remove(&open.conn, &seqs))?;
            open.checkpointer.committed();
            self.removed.executions += removed as u64;
        }
        Ok(())
    }

    /// Once its executions are gone.
    fn remove_session(&mut self, session: &str) -> Result<(), JournalError> {
        let logs = self.home.join("logs");
        let path = logs.join(journal::session_file(session));
        let open = self.database.lock();
        let is_removed = atomically(&open.conn, || due::remove_session(&open.conn, session))?;
        drop(open);
        if is_removed {
            self.removed.sessions += 1;
            let _alone = journal::lock(&logs)?;
            self.removed.log_files += u64::from(files::remove_file(&path));
        }
        Ok(())
    }

    /// Files that no row tells of any more: a pass was broken off, or the database is new.
    fn orphans(&mut self, retention: &Retention, now: SystemTime) -> Result<(), JournalError> {
        let _alone = journal::lock(&self.home.join("logs"))?;
        for file in files::old_logs(&self.home, retention, now) {
            if !due::is_file_known(&self.reader, &file)? {
                self.removed.log_files += u64::from(files::remove_file(&file.path));
            }
        }
        let oldest = now.checked_sub(retention.failure.max(retention.session));
        for id in oldest.map(|oldest| files::old_artifacts(&self.home, oldest)).unwrap_or_default()
        {
            if !due::is_known(&self.reader, &id)? {
                self.removed.artifacts += u64::from(files::remove_artifacts(&self.home, &id));
            }
        }
        Ok(())
    }
}
