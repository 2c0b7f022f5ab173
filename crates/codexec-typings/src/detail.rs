//! Levels of detail for declarations: a declaration that is too long is written with less detail.

/// Maximum length of one tool's declaration.
pub(super) const BUDGET_BYTES: usize = 4 << 10;
/// Maximum length of a signature.
const SIGNATURE_BYTES: usize = 1_500;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct DetailLevel {
    pub(super) depth: usize,
    /// Maximum length of a comment on a parameter; 0 for no comments.
    pub(super) note_bytes: usize,
    /// Maximum length of a comment on a nested field.
    pub(super) inner_note_bytes: usize,
    /// Maximum number of fields of one object.
    pub(super) fields: usize,
    /// Maximum number of choices of one union.
    pub(super) choices: usize,
}

/// From full detail to almost none.
const DECLARATION_LEVELS: [DetailLevel; 8] = [
    DetailLevel { depth: 12, note_bytes: 240, inner_note_bytes: 240, fields: 200, choices: 31 },
    DetailLevel { depth: 10, note_bytes: 200, inner_note_bytes: 80, fields: 100, choices: 31 },
    DetailLevel { depth: 8, note_bytes: 120, inner_note_bytes: 0, fields: 100, choices: 31 },
    DetailLevel { depth: 8, note_bytes: 50, inner_note_bytes: 0, fields: 100, choices: 20 },
    DetailLevel { depth: 5, note_bytes: 0, inner_note_bytes: 0, fields: 100, choices: 20 },
    DetailLevel { depth: 3, note_bytes: 0, inner_note_bytes: 0, fields: 60, choices: 12 },
    DetailLevel { depth: 2, note_bytes: 0, inner_note_bytes: 0, fields: 30, choices: 8 },
    DetailLevel { depth: 1, note_bytes: 0, inner_note_bytes: 0, fields: 10, choices: 4 },
];

const SIGNATURE_LEVELS: [DetailLevel; 4] = [
    DetailLevel { depth: 5, note_bytes: 0, inner_note_bytes: 0, fields: 60, choices: 20 },
    DetailLevel { depth: 3, note_bytes: 0, inner_note_bytes: 0, fields: 60, choices: 12 },
    DetailLevel { depth: 2, note_bytes: 0, inner_note_bytes: 0, fields: 30, choices: 8 },
    DetailLevel { depth: 1, note_bytes: 0, inner_note_bytes: 0, fields: 10, choices: 4 },
];

/// Returns the most detailed declaration that fits. `write` also returns true if it left
/// something out; `mark` is then added.
pub(super) fn fit_declaration(
    write: impl Fn(DetailLevel) -> (String, bool),
    mark: &str,
) -> Option<String> {
    DECLARATION_LEVELS.into_iter().find_map(|level| {
        let (text, is_cut) = write(level);
        let text = if is_cut { format!("{text}\n{mark}") } else { text };
        (text.len() <= BUDGET_BYTES).then_some(text)
    })
}

/// Returns the most detailed signature that fits; a signature does not say what it left out.
pub(super) fn fit_signature(write: impl Fn(DetailLevel) -> String) -> Option<String> {
    SIGNATURE_LEVELS.into_iter().map(write).find(|text| text.len() <= SIGNATURE_BYTES)
}
