//! What the user's terminal can show.

use std::io::IsTerminal as _;

use crate::env;

/// The role of coloured text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Good,
    Bad,
    Warning,
    /// Less important than the rest.
    Faint,
    Heading,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Paint::Good => "32",
            Paint::Bad => "31",
            Paint::Warning => "33",
            Paint::Faint => "2",
            Paint::Heading => "1",
        }
    }
}

/// Colours text for stdout, if that is a terminal that shows colours.
pub(super) fn paint_stdout(paint: Paint, text: &str) -> String {
    apply(paint, text, std::io::stdout().is_terminal())
}

/// Colours text for stderr, if that is a terminal that shows colours.
pub(super) fn paint_stderr(paint: Paint, text: &str) -> String {
    apply(paint, text, std::io::stderr().is_terminal())
}

fn apply(paint: Paint, text: &str, is_terminal: bool) -> String {
    match is_terminal && env::allows_colour() {
        true => format!("\u{1b}[{}m{text}\u{1b}[0m", paint.code()),
        false => text.to_owned(),
    }
}

/// Returns the number of columns of stdout, or `None` if stdout is not a terminal.
pub(super) fn stdout_columns() -> Option<usize> {
    let (columns, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(columns.0)).filter(|columns| *columns > 0)
}
