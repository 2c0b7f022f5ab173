//! Maps positions in the printed script back to positions in the guest's text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use codexec_types::Position;
use oxc_span::SourceType;

use crate::callee::explain_callee;

/// The engine's file name for the code of a single execution.
const CODE: &str = "<code>";

/// Maximum number of frames in a stack.
const MAX_FRAMES: usize = 20;

/// Maximum number of nested constructors of an error class that are skipped.
const MAX_CONSTRUCTORS: usize = 4;

/// Number of lines that [`crate::program`] puts before the printed text.
const HEAD_LINES: u32 = 1;

/// Limit of the remembered texts of a session's cells. Functions of older cells still run, but
/// their frames are left out of stacks.
const MAX_PRINTED_BYTES: usize = 4 << 20;

/// The texts that the engine runs: a single one with the number 0, or the cells of a session.
#[derive(Default)]
pub(crate) struct GuestTexts {
    latest: u32,
    /// The latest text itself.
    source: String,
    source_type: SourceType,
    positions: BTreeMap<u32, Positions>,
}

/// The mapping from a printed text to the guest's text.
#[derive(Default)]
pub(crate) struct Positions {
    printed: String,
    /// Sorted by the position in the printed text: line and UTF-16 column, from zero.
    tokens: Vec<((u32, u32), Position)>,
}

/// The guest's part of a stack.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stack {
    /// The position in the latest text.
    pub(crate) at: Option<Position>,
    /// `at` is the innermost frame, not that of a caller.
    pub(crate) is_innermost: bool,
    /// One frame per line.
    pub(crate) text: Option<String>,
}

/// One frame of a stack.
struct StackFrame<'a> {
    name: &'a str,
    text: u32,
    at: Position,
}

impl GuestTexts {
    /// Adds the text that runs from now on, and returns the engine's file name for it.
    pub(crate) fn add(
        &mut self,
        number: u32,
        (source, source_type): (String, SourceType),
        positions: Positions,
    ) -> Cow<'static, str> {
        self.latest = number;
        self.positions.insert(number, positions);
        let bytes = |texts: &BTreeMap<u32, Positions>| -> usize {
            texts.values().map(|text| text.printed.len()).sum()
        };
        while self.positions.len() > 1 && bytes(&self.positions) > MAX_PRINTED_BYTES {
            self.positions.pop_first();
        }
        self.source = source;
        self.source_type = source_type;
        if number == 0 { CODE.into() } else { format!("<cell {number}>").into() }
    }

    /// Parses the engine's stack text. Frames that are not the guest's are left out, and so are the
    /// constructors of the error's own class, `maker`, because the position of the `new` is more
    /// useful.
    pub(crate) fn parse_stack(&self, engine: &str, maker: &str) -> Stack {
        let frames: Vec<_> = engine.lines().filter_map(|line| self.parse_frame(line)).collect();
        let made = frames.iter().take(MAX_CONSTRUCTORS).rposition(|frame| frame.name == maker);
        let shown = frames.get(made.map_or(0, |index| index + 1)..).unwrap_or_default();
        let at = shown.iter().find(|frame| frame.text == self.latest).map(|frame| frame.at);
        let frames: Vec<String> =
            shown.iter().take(MAX_FRAMES).map(|frame| self.format_frame(frame)).collect();
        let innermost = engine.lines().next().and_then(|line| self.parse_frame(line));
        let is_innermost = innermost.is_some_and(|frame| frame.text == self.latest);
        Stack { at, is_innermost, text: (!frames.is_empty()).then(|| frames.join("\n")) }
    }

    /// Names what the latest text called at this position.
    pub(crate) fn explain_callee(&self, at: Position) -> Option<String> {
        explain_callee(&self.source, self.source_type, at)
    }

    fn format_frame(
        &self,
        StackFrame { name, text, at: Position { line, column } }: &StackFrame<'_>,
    ) -> String {
        if *text == self.latest {
            format!("at {name} ({line}:{column})")
        } else {
            format!("at {name} (cell {text}, {line}:{column})")
        }
    }

    /// Parses `    at name (<code>:3:7)`, or `    at <code>:3:7` for an error of the engine's
    /// parser.
    fn parse_frame<'a>(&self, line: &'a str) -> Option<StackFrame<'a>> {
        let frame = line.trim_start().strip_prefix("at ")?;
        let (name, place) = frame.rsplit_once(" (").unwrap_or(("<main>", frame));
        let (text, place) = match place.strip_prefix(CODE) {
            Some(place) => (0, place),
            None => {
                let (number, place) = place.strip_prefix("<cell ")?.split_once('>')?;
                (number.parse().ok()?, place)
            }
        };
        let place = place.strip_prefix(':')?;
        let (line, column) = place.strip_suffix(')').unwrap_or(place).split_once(':')?;
        let positions = self.positions.get(&text)?;
        let at = positions.map_to_original(line.parse().ok()?, column.parse().ok()?)?;
        Some(StackFrame { name, text, at })
    }
}

impl Positions {
    pub(crate) fn new(
        printed: String,
        tokens: impl Iterator<Item = ((u32, u32), Position)>,
    ) -> Positions {
        Positions { printed, tokens: tokens.collect() }
    }

    /// Maps `line` and `byte_column` as the engine counts them: in the whole script, from one.
    fn map_to_original(&self, line: u32, byte_column: u32) -> Option<Position> {
        let line = line.checked_sub(HEAD_LINES + 1)?;
        let column = self.utf16_column(line, byte_column.saturating_sub(1))?;
        let after = self.tokens.partition_point(|(place, _)| *place <= (line, column));
        let before = after.checked_sub(1).and_then(|index| self.tokens.get(index));
        before
            .filter(|(place, _)| place.0 == line)
            .or_else(|| self.tokens.get(after).filter(|(place, _)| place.0 == line))
            .or(before)
            .map(|(_, position)| *position)
    }

    fn utf16_column(&self, line: u32, byte_column: u32) -> Option<u32> {
        let line = self.printed.lines().nth(line as usize)?;
        Some(utf16_length(line.get(..byte_column as usize).unwrap_or(line)))
    }
}

/// Returns the position of a byte offset in the guest's text.
pub(crate) fn position_of(code: &str, offset: u32) -> Position {
    let before = code.get(..offset as usize).unwrap_or(code);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let lines = before.bytes().filter(|&b| b == b'\n').count();
    Position {
        line: u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1),
        column: utf16_length(before.get(line_start..).unwrap_or_default()).saturating_add(1),
    }
}

/// Returns the length in UTF-16 units, which editors use for columns.
fn utf16_length(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
