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

/// Cuts a text after at most this many characters, between two words, and marks the cut. Only a
/// single word that is longer is cut inside.
pub fn cut_at_word(text: &str, chars: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(chars) else { return text.to_owned() };
    let head = text.get(..end).unwrap_or_default();
    let is_at_end = text.get(end..).is_some_and(|rest| rest.starts_with(char::is_whitespace));
    let head = match head.rfind(char::is_whitespace).filter(|_| !is_at_end) {
        Some(end) => head.get(..end).unwrap_or_default(),
        None => head,
    };
    let is_loose = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':');
    format!("{}…", head.trim_end_matches(is_loose))
}

/// Keeps the last `bytes` bytes of a text, and marks the cut.
pub fn cut_text_front(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - bytes);
    format!("…{}", text.get(start..).unwrap_or_default())
}
