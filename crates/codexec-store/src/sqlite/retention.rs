//! Removes executions, sessions and their files by age and by total size.

mod due;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime},
};

use rusqlite::Connection;

use self::due::DueExecution;
use super::{
    database::Database, index::SearchIndex, readers, savepoint::run_atomically,
    unlogged::JournalError,
};
use crate::{
    Retention, RetentionReport, journal,
    retention::{PASS_EXECUTIONS, files, find_clock_problem},
};

/// How many rows are removed in one transaction.
const BATCH: usize = 100;

/// The time of a server's last pass. Its lock allows one pass at a time.
#[derive(Debug, Default)]
pub(crate) struct LastPass(Mutex<Option<(Instant, SystemTime)>>);

impl LastPass {
    /// Runs a pass.
    pub(crate) fn run(
        &self,
        retention: &Retention,
        now: SystemTime,
        database: &Database,
        path: &Path,
    ) -> Result<RetentionReport, JournalError> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.replace((Instant::now(), now));
        let reader = readers::open(path)?;
        if let Some(reason) = find_clock_problem(before, now, due::newest_start(&reader)?) {
            tracing::warn!("{reason}; retention removes nothing in this pass");
            return Ok(RetentionReport { is_doubtful: true, ..RetentionReport::default() });
        }
        let home = path.parent().unwrap_or(Path::new(".")).to_owned();
        let index = SearchIndex::next_to(path);
        let removed = RetentionReport::default();
        let mut pass = RetentionPass { reader, index, database, home, removed };
        pass.remove_expired(retention, now)?;
        pass.shrink(retention.max_bytes)?;
        let removed = pass.removed;
        if removed.is_more {
            let executions = removed.executions;
            tracing::warn!(executions, "more is due than one pass removes; the next continues");
        }
        Ok(removed)
    }
}

/// One running pass.
struct RetentionPass<'a> {
    reader: Connection,
    index: SearchIndex,
    database: &'a Database,
    home: PathBuf,
    removed: RetentionReport,
}

impl RetentionPass<'_> {
    fn remove_expired(
        &mut self,
        retention: &Retention,
        now: SystemTime,
    ) -> Result<(), JournalError> {
        let mut due = due::list_expired(&self.reader, retention, now, PASS_EXECUTIONS + 1)?;
        self.removed.is_more = due.len() > PASS_EXECUTIONS;
        due.truncate(PASS_EXECUTIONS);
        self.remove(&due)?;
        for session in due::list_expired_sessions(&self.reader, retention, now)? {
            self.remove_session(&session)?;
        }
        self.remove_orphans(retention, now)
    }

    /// Removes the oldest executions until the rest fits into `max_bytes`.
    fn shrink(&mut self, max_bytes: u64) -> Result<(), JournalError> {
        let step = PASS_EXECUTIONS / 20;
        loop {
            let rows = due::database_bytes(&self.reader)? + self.index.bytes();
            let used = rows + files::used_bytes(&self.home);
            if used <= max_bytes {
                return Ok(());
            }
            if self.removed.executions >= PASS_EXECUTIONS as u64 {
                self.removed.is_more = true;
                return Ok(());
            }
            let oldest = due::list_oldest(&self.reader, step)?;
            if oldest.is_empty() {
                return Ok(());
            }
            self.remove(&oldest)?;
        }
    }

    fn remove(&mut self, due: &[DueExecution]) -> Result<(), JournalError> {
        let mut files: BTreeMap<String, HashSet<String>> = BTreeMap::new();
        for execution in due {
            files.entry(execution.log_file()).or_default().insert(execution.id.clone());
        }
        let logs = self.home.join("logs");
        for (name, ids) in files {
            // Locked for one file at a time, because new entries wait meanwhile.
            let _lock = journal::lock(&logs)?;
            self.removed.log_files += u64::from(journal::remove_lines(&logs, &name, &ids)?);
        }
        for batch in due.chunks(BATCH) {
            let seqs: Vec<i64> = batch.iter().map(|execution| execution.seq).collect();
            for execution in batch {
                let is_removed = files::remove_artifacts(&self.home, &execution.id);
                self.removed.artifacts += u64::from(is_removed);
            }
            let ends: Vec<i64> = batch.iter().map(|execution| execution.end_number).collect();
            self.index.remove(&ends)?;
            let mut open = self.database.lock();
            let removed = run_atomically(&open.conn, || due::remove(&open.conn, &seqs))?;
            open.checkpointer.count_commit();
            self.removed.executions += removed as u64;
        }
        Ok(())
    }

    /// Removes a session, if its executions are gone.
    fn remove_session(&mut self, session: &str) -> Result<(), JournalError> {
        let logs = self.home.join("logs");
        let path = logs.join(journal::session_file(session));
        let open = self.database.lock();
        let is_removed = run_atomically(&open.conn, || due::remove_session(&open.conn, session))?;
        drop(open);
        if is_removed {
            self.removed.sessions += 1;
            let _lock = journal::lock(&logs)?;
            self.removed.log_files += u64::from(files::remove_file(&path));
        }
        Ok(())
    }

    /// Removes old files that have no row: a pass was interrupted, or the database is new.
    fn remove_orphans(
        &mut self,
        retention: &Retention,
        now: SystemTime,
    ) -> Result<(), JournalError> {
        let _lock = journal::lock(&self.home.join("logs"))?;
        for file in files::list_old_logs(&self.home, retention, now) {
            if !due::has_rows_in(&self.reader, &file)? {
                self.removed.log_files += u64::from(files::remove_file(&file.path));
            }
        }
        let oldest = now.checked_sub(retention.failure.max(retention.session));
        let old = oldest.map(|oldest| files::list_old_artifacts(&self.home, oldest));
        for id in old.unwrap_or_default() {
            if !due::has_execution(&self.reader, &id)? {
                self.removed.artifacts += u64::from(files::remove_artifacts(&self.home, &id));
            }
        }
        Ok(())
    }
}
