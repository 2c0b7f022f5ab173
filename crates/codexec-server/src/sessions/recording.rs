//! Records of a session's cells, for replay: their code, and the answers they got.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use codexec_types::{Ask, CallCode, CallError, Json};
use serde::{Deserialize, Serialize};

use super::lock;
use crate::SnapshotError;

/// Maximum length of a session's recording.
pub(crate) const MAX_RECORD_BYTES: usize = 16 << 20;
/// Cost of an answer, in addition to its texts.
const ANSWER_BYTES: usize = 128;

/// A cell that succeeded, with all answers it got, in the order of the asks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedCell {
    pub code: String,
    pub input: Json,
    pub args: Vec<String>,
    answers: Vec<(Ask, Result<Json, CallError>)>,
    /// Length of code, input and answers, including answers that were dropped.
    #[serde(skip)]
    bytes: usize,
}

/// A cell that is replayed. Its asks are answered only from the record.
pub(crate) struct Replay {
    pub(crate) recorded: RecordedCell,
    /// Indexes of the answers that were used again.
    used: Mutex<HashSet<usize>>,
}

/// The recorded cells of a session.
#[derive(Default)]
pub(super) struct Recording {
    cells: Vec<Arc<RecordedCell>>,
    bytes: usize,
}

impl RecordedCell {
    pub(crate) fn new(code: String, input: Json, args: Vec<String>) -> RecordedCell {
        let bytes = code.len() + input.text().len();
        RecordedCell { code, input, args, answers: Vec::new(), bytes }
    }

    /// Adds an answer.
    ///
    /// THREAT[ORD-4]: answers are counted while the cell runs. With too many of them the cell
    /// cannot be replayed, and none are kept.
    pub(crate) fn push(&mut self, ask: Ask, result: Result<Json, CallError>) {
        let answer = match &result {
            Ok(json) => json.text().len(),
            Err(error) => error.message.len(),
        };
        self.bytes = self.bytes.saturating_add(ask.text_bytes() + answer + ANSWER_BYTES);
        if self.has_room() {
            self.answers.push((ask, result));
        } else {
            self.answers = Vec::new();
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.bytes <= MAX_RECORD_BYTES
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Replay {
    pub(crate) fn new(recorded: RecordedCell) -> Replay {
        Replay { recorded, used: Mutex::default() }
    }

    /// Returns the recorded answer to an ask. Each answer is used once; equal asks get theirs in
    /// order.
    pub(crate) fn answer(&self, ask: &Ask) -> Result<Json, CallError> {
        let mut used = lock(&self.used);
        let mut asked = self.recorded.answers.iter().enumerate();
        let found = asked.find(|(at, (then, _))| then == ask && !used.contains(at));
        let Some((at, (_, result))) = found else {
            let message = "this was not asked when the session was recorded, and a replay reaches no \
                           server; open a new session instead";
            return Err(CallError::new(CallCode::UpstreamError, message));
        };
        used.insert(at);
        result.clone()
    }
}

impl Recording {
    pub(super) fn push(&mut self, cell: RecordedCell) {
        self.bytes = self.bytes.saturating_add(cell.bytes());
        // Without one cell, the others cannot be replayed.
        if self.bytes > MAX_RECORD_BYTES {
            self.cells = Vec::new();
        } else {
            self.cells.push(Arc::new(cell));
        }
    }

    pub(super) fn cells(&self) -> Result<Vec<Arc<RecordedCell>>, SnapshotError> {
        if self.bytes > MAX_RECORD_BYTES {
            Err(SnapshotError::TooLong)
        } else {
            Ok(self.cells.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask() -> Ask {
        Ask::Help { name: None }
    }

    #[test]
    fn ord_4_a_cell_with_too_many_answers_keeps_none_and_ends_the_recording() {
        let mut cell = RecordedCell::new("1".to_owned(), Json::null(), Vec::new());
        let answer = Json::from_value(&"x".repeat(1 << 20).into());
        for _ in 0..64 {
            cell.push(ask(), Ok(answer.clone()));
            let held: usize = cell
                .answers
                .iter()
                .filter_map(|(_, result)| Some(result.as_ref().ok()?.text().len()))
                .sum();
            assert!(held <= MAX_RECORD_BYTES, "{held}");
        }
        assert!(cell.answers.is_empty() && !cell.has_room());
        let mut recording = Recording::default();
        recording.push(cell);
        assert!(matches!(recording.cells(), Err(SnapshotError::TooLong)));
    }

    #[test]
    fn each_answer_is_used_once_and_in_order() {
        let mut cell = RecordedCell::new(String::new(), Json::null(), Vec::new());
        for number in 0..3 {
            cell.push(ask(), Ok(Json::from_value(&number.into())));
        }
        let replay = Replay::new(cell);
        let given: Vec<String> =
            (0..3).map(|_| replay.answer(&ask()).expect("recorded").text().to_owned()).collect();
        assert_eq!(given, ["0", "1", "2"]);
        assert!(replay.answer(&ask()).is_err());
    }
}
