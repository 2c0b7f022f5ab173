//! THREAT[TXT-2]: removes invisible characters from the text of upstreams, which people and models
//! read.

use crate::is_hidden;

/// Strips control characters (all but newline and tab), and characters that hide or reorder
/// text: zero-width, bidirectional, tag and variation characters.
pub fn clean_text(text: &str) -> String {
    // Nearly all text is plain ASCII, so the scan by character is rarely needed.
    if text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t')) {
        return text.to_owned();
    }
    text.chars().filter(|&c| !is_hidden(c)).collect()
}

/// Cleans a text and joins it into one line.
pub fn clean_line(text: &str) -> String {
    let text = clean_text(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts a text to at most `bytes` bytes, at a character boundary, and marks the cut.
pub fn cut_text(text: &str, bytes: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(MARK.len()));
    format!("{}{MARK}", text.get(..end).unwrap_or_default().trim_end())
}
