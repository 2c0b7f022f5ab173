//! Text for terminals: tables, and untrusted text with its control characters escaped.

use chrono::{DateTime, Local, NaiveDate, NaiveDateTime, SecondsFormat};
use codexec_types::is_hidden;
use serde_json::Value;

use super::terminal::{Paint, paint_stdout, stdout_columns};

/// The least width of a column that is cut to fit the terminal.
const MIN_COLUMN: usize = 10;

/// Formats an aligned table for stdout. At a terminal, the table fits its width: the last column is
/// cut first, then the widest of the others, but never the first, which has names and ids.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    format_table(head, rows, stdout_columns(), paint_stdout)
}

fn format_table(
    head: &[&str],
    rows: &[Vec<String>],
    columns: Option<usize>,
    paint: impl Fn(Paint, &str) -> String,
) -> String {
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let lines = || std::iter::once(&head).chain(rows);
    let width = |column: usize| {
        let cells = lines().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..head.len()).map(width).collect();
    if let Some(columns) = columns {
        fit(&mut widths, columns);
    }
    let mut text = String::new();
    for (number, line) in lines().enumerate() {
        let cells = line.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
            let cut = cut_line(cell, *width);
            let padding = if at + 1 == line.len() { 0 } else { width - cut.chars().count() };
            let painted = match (number, paint_of(cell)) {
                (0, _) => paint(Paint::Heading, &cut),
                (_, Some(colour)) => paint(colour, &cut),
                (_, None) => cut,
            };
            format!("{painted}{:padding$}", "")
        });
        let joined: Vec<String> = cells.collect();
        text.push_str(joined.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Narrows columns until the table has at most this many characters, or cannot be narrowed.
fn fit(widths: &mut [usize], columns: usize) {
    let total =
        |widths: &[usize]| widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
    let mut excess = total(widths).saturating_sub(columns);
    if let [_, .., last] = widths {
        let cut = excess.min(last.saturating_sub(MIN_COLUMN));
        *last -= cut;
        excess -= cut;
    }
    while excess > 0 {
        let others = widths.get_mut(1..).unwrap_or_default().iter_mut();
        let Some(widest) = others.max().filter(|width| **width > MIN_COLUMN) else { return };
        *widest -= 1;
        excess -= 1;
    }
}

/// Returns the colour of a word that says how something is.
fn paint_of(cell: &str) -> Option<Paint> {
    match cell {
        "ready" | "success" | "open" => Some(Paint::Good),
        "failed" | "timeout" | "refused" | "left out" | "interrupted" => Some(Paint::Bad),
        "waiting" | "held" | "needs login" | "starting" | "running" | "cancelled" => {
            Some(Paint::Warning)
        }
        "disabled" | "not checked" => Some(Paint::Faint),
        _ => None,
    }
}

/// Formats text as one line of at most `most` characters.
pub(super) fn one_line(text: &str, most: usize) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    cut_line(&escape_hidden(&line), most)
}

/// Cuts a line to at most `most` characters.
fn cut_line(line: &str, most: usize) -> String {
    match line.chars().count() > most {
        true => line.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => line.to_owned(),
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

/// Formats `2026-02-09T14:30:00.123Z` as `2026-02-09 14:30:00` in the user's time zone.
pub(super) fn timestamp(value: &Value, name: &str) -> String {
    let text = field(value, name);
    match DateTime::parse_from_rfc3339(&text) {
        Ok(time) => time.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => text,
    }
}

/// Reads a time without a zone as the user's; any other text is returned unchanged.
pub(super) fn local_time_to_utc(text: &str) -> String {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
    let time = day.and_then(|day| day.and_hms_opt(0, 0, 0)).or_else(|| {
        let forms = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"];
        forms.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
    });
    match time.and_then(|time| time.and_local_timezone(Local).earliest()) {
        Some(time) => time.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true),
        None => text.to_owned(),
    }
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
    fn a_table_fits_its_terminal() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["name-of-a-server", "ready", "a long text about it"])];
        let plain = |_: Paint, text: &str| text.to_owned();
        let format = |columns| format_table(&["NAME", "STATE", "ABOUT"], &rows, columns, plain);
        let whole =
            "NAME              STATE  ABOUT\nname-of-a-server  ready  a long text about it\n";
        assert_eq!((format(None).as_str(), format(Some(45)).as_str()), (whole, whole));
        let cut = "NAME              STATE  ABOUT\nname-of-a-server  ready  a long text…\n";
        assert_eq!(format(Some(37)), cut);
        // No narrower than can be read.
        assert_eq!(format(Some(20)).lines().last(), Some("name-of-a-server  ready  a long te…"));
    }

    #[test]
    fn words_about_states_are_coloured() {
        let rows = [vec!["a".to_owned(), "failed".to_owned(), "b".to_owned()]];
        let marked = |paint: Paint, text: &str| match paint {
            Paint::Bad => format!("!{text}!"),
            _ => text.to_owned(),
        };
        let text = format_table(&["X", "STATE", "Y"], &rows, None, marked);
        assert_eq!(text, "X  STATE   Y\na  !failed!  b\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(one_line("a\u{1b}[2J\n  b\u{202e}", 80), "a\\u{1b}[2J b\\u{202e}");
        assert_eq!(one_line("one two three", 8), "one two…");
        assert_eq!(escape_hidden("a\n\tb\r"), "a\n\tb\\u{d}");
    }
}
