//! How much of a shape is written. A long one is written again with less, until it fits.

/// The longest declaration of one tool.
pub(super) const BUDGET_BYTES: usize = 4 << 10;
/// The longest signature.
const LINE_BYTES: usize = 1_500;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) depth: usize,
    /// The longest comment on a parameter; none at 0.
    pub(super) note_bytes: usize,
    /// The same on what is nested deeper.
    pub(super) inner_note_bytes: usize,
    /// Fields of one object.
    pub(super) fields: usize,
    /// Choices of one union.
    pub(super) choices: usize,
}

/// From all there is to almost nothing.
const DECLARATION: [Look; 8] = [
    Look { depth: 12, note_bytes: 240, inner_note_bytes: 240, fields: 200, choices: 31 },
    Look { depth: 10, note_bytes: 200, inner_note_bytes: 80, fields: 100, choices: 31 },
    Look { depth: 8, note_bytes: 120, inner_note_bytes: 0, fields: 100, choices: 31 },
    Look { depth: 8, note_bytes: 50, inner_note_bytes: 0, fields: 100, choices: 20 },
    Look { depth: 5, note_bytes: 0, inner_note_bytes: 0, fields: 100, choices: 20 },
    Look { depth: 3, note_bytes: 0, inner_note_bytes: 0, fields: 60, choices: 12 },
    Look { depth: 2, note_bytes: 0, inner_note_bytes: 0, fields: 30, choices: 8 },
    Look { depth: 1, note_bytes: 0, inner_note_bytes: 0, fields: 10, choices: 4 },
];

const LINE: [Look; 4] = [
    Look { depth: 5, note_bytes: 0, inner_note_bytes: 0, fields: 60, choices: 20 },
    Look { depth: 3, note_bytes: 0, inner_note_bytes: 0, fields: 60, choices: 12 },
    Look { depth: 2, note_bytes: 0, inner_note_bytes: 0, fields: 30, choices: 8 },
    Look { depth: 1, note_bytes: 0, inner_note_bytes: 0, fields: 10, choices: 4 },
];

/// The first that fits; `write` also says whether it left anything out.
pub(super) fn declaration(write: impl Fn(Look) -> (String, bool), mark: &str) -> Option<String> {
    DECLARATION.into_iter().find_map(|look| {
        let (text, is_cut) = write(look);
        let text = if is_cut { format!("{text}\n{mark}") } else { text };
        (text.len() <= BUDGET_BYTES).then_some(text)
    })
}

/// The same on one line, where nothing needs to be said of what is left out.
pub(super) fn line(write: impl Fn(Look) -> String) -> Option<String> {
    LINE.into_iter().map(write).find(|text| text.len() <= LINE_BYTES)
}
