//! Ends that could not be written, for example because the disk is full. They wait in memory until
//! they can be written.
//!
//! While an end waits, no execution is begun, so there are never more ends than executions ran.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{call_row::FinishedCall, execution_row::ExecutionEndRow};

/// The limit on the texts of all waiting ends. Beyond it, ends wait without their texts.
const TEXT_BYTES: usize = 64 << 20;

/// The end of an execution and of its tool calls.
#[derive(Debug)]
pub(crate) struct PendingEnd {
    pub(crate) finished: ExecutionEndRow,
    pub(crate) calls: Vec<FinishedCall>,
}

#[derive(Debug, Default)]
pub(crate) struct PendingEnds(Mutex<VecDeque<Arc<PendingEnd>>>);

impl PendingEnd {
    fn text_bytes(&self) -> usize {
        let calls: usize = self.calls.iter().map(FinishedCall::bytes).sum();
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

    /// Returns the end that is to be written next.
    pub(crate) fn first(&self) -> Option<Arc<PendingEnd>> {
        self.ends().front().map(Arc::clone)
    }

    /// Removes the first end, once it is written.
    pub(crate) fn remove_first(&self) {
        self.ends().pop_front();
    }

    fn ends(&self) -> MutexGuard<'_, VecDeque<Arc<PendingEnd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
