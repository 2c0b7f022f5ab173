//! THREAT[TXT-2]: what an upstream writes is shown to people and models: nothing invisible gets through.

use codexec_types::is_hidden;

/// Strips control characters (all but newline and tab), and characters that hide or reorder
/// text: zero-width, bidirectional, tag and variation characters.
pub(crate) fn clean(text: &str) -> String {
    // Nearly all texts have nothing to take out, and then it need not be looked for by character.
    if text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t')) {
        return text.to_owned();
    }
    text.chars().filter(|&c| !is_hidden(c)).collect()
}

/// The same, on one line.
pub(crate) fn clean_line(text: &str) -> String {
    let text = clean(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most `bytes` bytes, never inside a character, with a mark where something was cut.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(MARK.len()));
    format!("{}{MARK}", text.get(..end).unwrap_or_default().trim_end())
}

/// The last `bytes` bytes.
pub(crate) fn cut_front(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - bytes);
    format!("…{}", text.get(start..).unwrap_or_default())
}
