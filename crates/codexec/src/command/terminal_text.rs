//! Text for terminals: tables, and untrusted text with its control characters escaped.

use codexec_types::is_hidden;
use serde_json::Value;

/// Formats an aligned table.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let lines = || std::iter::once(&head).chain(rows);
    let width = |column: usize| {
        let cells = lines().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    for line in lines() {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let joined: Vec<String> = cells.collect();
        text.push_str(joined.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Formats text as one line of at most `most` characters.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = escape_hidden(&line);
    match line.chars().count() > most {
        true => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => line,
    }
}

/// Escapes characters that a terminal would hide or interpret.
pub(super) fn escape_hidden(text: &str) -> String {
    let written = |c: char| match is_hidden(c) {
        true => c.escape_unicode().to_string(),
        false => c.to_string(),
    };
    text.chars().map(written).collect()
}

/// Returns a field of a function's result as text; empty if it is missing.
pub(super) fn field(value: &Value, name: &str) -> String {
    match value.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let text = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
            items.iter().map(text).collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}

/// Formats `2026-02-09T14:30:00.123Z` as `2026-02-09 14:30:00`.
pub(super) fn timestamp(value: &Value, name: &str) -> String {
    let text = field(value, name);
    let whole = text.split('.').next().unwrap_or_default().trim_end_matches('Z');
    whole.replacen('T', " ", 1)
}

/// Returns the items of a list in a function's result.
pub(super) fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        let rows = [vec!["a".to_owned(), "b b".to_owned()], vec!["long".to_owned(), String::new()]];
        assert_eq!(table(&["X", "Y"], &rows), "X     Y\na     b b\nlong\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(one_line("a\u{1b}[2J\n  b\u{202e}", 80), "a\\u{1b}[2J b\\u{202e}");
        assert_eq!(one_line("one two three", 8), "one two…");
        assert_eq!(escape_hidden("a\n\tb\r"), "a\n\tb\\u{d}");
    }
}
