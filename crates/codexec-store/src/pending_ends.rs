//! Ends that could not be written, for example because the disk is full. They wait in memory until
//! they can be written.
//!
//! While an end waits, no execution is begun, so there are never more ends than executions ran.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::{Connection, Result};

use crate::{calls, database::Database, savepoint::run_atomically, write::ExecutionEndRow};

/// The limit on the texts of all waiting ends. Beyond it, ends wait without their texts.
const TEXT_BYTES: usize = 64 << 20;

/// The end of an execution and of its tool calls.
#[derive(Debug)]
pub(crate) struct PendingEnd {
    pub(crate) finished: ExecutionEndRow,
    pub(crate) calls: Vec<calls::FinishedCall>,
}

#[derive(Debug, Default)]
pub(crate) struct PendingEnds(Mutex<VecDeque<Arc<PendingEnd>>>);

impl PendingEnd {
    /// Updates the rows. Returns false if the execution was not running.
    pub(crate) fn update(&self, conn: &Connection) -> Result<bool> {
        if self.calls.is_empty() {
            return self.finished.update(conn);
        }
        run_atomically(conn, || {
            self.calls.iter().try_for_each(|call| call.update(conn, &self.finished.id))?;
            self.finished.update(conn)
        })
    }

    fn text_bytes(&self) -> usize {
        let calls: usize = self.calls.iter().map(calls::FinishedCall::bytes).sum();
        self.finished.text_bytes() + calls
    }
}

impl PendingEnds {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends().is_empty()
    }

    pub(crate) fn push(&self, end: Arc<PendingEnd>) {
        let mut ends = self.ends();
        let used: usize = ends.iter().map(|end| end.text_bytes()).sum();
        let end = if used + end.text_bytes() > TEXT_BYTES {
            let finished = end.finished.without_texts();
            Arc::new(PendingEnd { finished, calls: Vec::new() })
        } else {
            end
        };
        ends.push_back(end);
    }

    /// Writes the ends in order, until one fails.
    pub(crate) fn write(&self, database: &Database) -> Result<()> {
        loop {
            let Some(end) = self.ends().front().map(Arc::clone) else { return Ok(()) };
            let mut open = database.lock();
            end.update(&open.conn)?;
            open.checkpointer.count_commit();
            drop(open);
            self.ends().pop_front();
        }
    }

    fn ends(&self) -> MutexGuard<'_, VecDeque<Arc<PendingEnd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
