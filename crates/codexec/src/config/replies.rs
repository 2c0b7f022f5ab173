use codexec_server::TextBudget;

use super::{ConfigError, file, limits::within};

/// Returns the reply budget. Head and tail together never exceed the whole.
pub(super) fn budget(file: &file::RepliesSection) -> Result<TextBudget, ConfigError> {
    let usual = TextBudget::DEFAULT;
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let max = within("replies.max-chars", file.max_chars, usual.chars as u64, 100..=1_000_000)?;
    // If only `max-chars` is set, head and tail keep their default share of it.
    let share = |end: usize| (end as u64).saturating_mul(max) / (usual.chars as u64);
    let beside_tail = max.saturating_sub(file.tail.unwrap_or(0));
    let head = within("replies.head", file.head, share(usual.head).min(beside_tail), 0..=max)?;
    let tail =
        within("replies.tail", file.tail, share(usual.tail).min(max - head), 0..=max - head)?;
    Ok(TextBudget { chars: count(max), head: count(head), tail: count(tail) })
}
