//! What is needed to run a session's cells again: their code, and what they were answered.

use std::sync::{Arc, Mutex};

use codexec_types::{Ask, CallCode, CallError, Json};
use serde::{Deserialize, Serialize};

use super::lock;
use crate::SnapshotError;

/// No session's record is longer.
pub(crate) const MAX_RECORD_BYTES: usize = 64 << 20;

/// A cell that succeeded, with everything it was answered, in the order of asking.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recorded {
    pub code: String,
    pub input: Json,
    pub args: Vec<String>,
    answers: Vec<(Ask, Result<Json, CallError>)>,
}

/// A cell that runs again, answered from the record and from nowhere else.
pub(crate) struct Replay {
    pub(crate) recorded: Recorded,
    /// Which answers were given again.
    used: Mutex<Vec<usize>>,
}

/// What a session has kept up to now.
#[derive(Default)]
pub(super) struct Recording {
    cells: Vec<Arc<Recorded>>,
    bytes: usize,
}

impl Recorded {
    pub(crate) fn new(code: String, input: Json, args: Vec<String>) -> Recorded {
        Recorded { code, input, args, answers: Vec::new() }
    }

    pub(crate) fn push(&mut self, ask: Ask, result: Result<Json, CallError>) {
        self.answers.push((ask, result));
    }

    fn bytes(&self) -> usize {
        let answer = |result: &Result<Json, CallError>| match result {
            Ok(json) => json.text().len(),
            Err(error) => error.message.len(),
        };
        let answers = self.answers.iter().map(|(ask, result)| ask.weight_bytes() + answer(result));
        self.code.len() + self.input.text().len() + answers.sum::<usize>()
    }
}

impl Replay {
    pub(crate) fn new(recorded: Recorded) -> Replay {
        Replay { recorded, used: Mutex::default() }
    }

    /// What this was answered then: each answer once, the same questions in the same order.
    pub(crate) fn answer(&self, ask: &Ask) -> Result<Json, CallError> {
        let mut used = lock(&self.used);
        let mut asked = self.recorded.answers.iter().enumerate();
        let found = asked.find(|(at, (then, _))| then == ask && !used.contains(at));
        let Some((at, (_, result))) = found else {
            let message = "this was not asked when the session was recorded, and what runs again \
                           reaches no server; open a new session instead";
            return Err(CallError::new(CallCode::UpstreamError, message));
        };
        used.push(at);
        result.clone()
    }
}

impl Recording {
    pub(super) fn push(&mut self, cell: Recorded) {
        self.bytes = self.bytes.saturating_add(cell.bytes());
        // Without one of them the others are worth nothing.
        if self.bytes > MAX_RECORD_BYTES {
            self.cells = Vec::new();
        } else {
            self.cells.push(Arc::new(cell));
        }
    }

    pub(super) fn cells(&self) -> Result<Vec<Arc<Recorded>>, SnapshotError> {
        if self.bytes > MAX_RECORD_BYTES {
            Err(SnapshotError::TooLong)
        } else {
            Ok(self.cells.clone())
        }
    }
}
