//! Ends that could not be written when they came: they wait in memory until there is room.
//!
//! While any waits nothing is begun, so there are never more than executions were running.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::{Connection, Result};

use crate::{calls, database::Database, savepoint::atomically, write::Finished};

/// Of the texts of all that wait; from there on ends wait without their texts.
const TEXT_BYTES: usize = 64 << 20;

/// An execution's end, and how its tool calls ended.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) finished: Finished,
    pub(crate) calls: Vec<calls::Ended>,
}

#[derive(Debug, Default)]
pub(crate) struct Late(Mutex<VecDeque<Arc<End>>>);

impl End {
    /// Whether it was running.
    pub(crate) fn update(&self, conn: &Connection) -> Result<bool> {
        if self.calls.is_empty() {
            return self.finished.update(conn);
        }
        atomically(conn, || {
            self.calls.iter().try_for_each(|call| call.update(conn, &self.finished.id))?;
            self.finished.update(conn)
        })
    }

    fn text_bytes(&self) -> usize {
        let calls: usize = self.calls.iter().map(calls::Ended::bytes).sum();
        self.finished.text_bytes() + calls
    }
}

impl Late {
    pub(crate) fn is_empty(&self) -> bool {
        self.ends().is_empty()
    }

    pub(crate) fn push(&self, end: Arc<End>) {
        let mut ends = self.ends();
        let waiting: usize = ends.iter().map(|end| end.text_bytes()).sum();
        let end = if waiting + end.text_bytes() > TEXT_BYTES {
            let finished = end.finished.without_texts();
            Arc::new(End { finished, calls: Vec::new() })
        } else {
            end
        };
        ends.push_back(end);
    }

    /// In order, until one cannot be written.
    pub(crate) fn write(&self, database: &Database) -> Result<()> {
        loop {
            let Some(end) = self.ends().front().map(Arc::clone) else { return Ok(()) };
            let mut open = database.lock();
            end.update(&open.conn)?;
            open.checkpointer.committed();
            drop(open);
            self.ends().pop_front();
        }
    }

    fn ends(&self) -> MutexGuard<'_, VecDeque<Arc<End>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
