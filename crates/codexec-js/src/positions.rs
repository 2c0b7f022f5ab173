//! From places in the printed script back to places in the guest's own text.

use codexec_types::Position;

/// The file name under which the engine knows the guest's code.
pub(crate) const CODE: &str = "<code>";

/// More of a stack than this helps nobody.
const MAX_FRAMES: usize = 20;

/// How deep a class of errors is looked into.
const MAX_CONSTRUCTORS: usize = 4;

/// Lines that [`crate::program`] puts before the printed text.
const HEAD_LINES: u32 = 1;

/// What the printed text and the guest's text have to do with each other.
#[derive(Default)]
pub(crate) struct Positions {
    printed: String,
    /// Sorted by the place in the printed text: line and UTF-16 column, from zero.
    tokens: Vec<((u32, u32), Position)>,
}

/// The guest's part of a stack.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stack {
    pub(crate) at: Option<Position>,
    /// One frame a line.
    pub(crate) text: Option<String>,
}

impl Positions {
    pub(crate) fn new(
        printed: String,
        tokens: impl Iterator<Item = ((u32, u32), Position)>,
    ) -> Positions {
        Positions { printed, tokens: tokens.collect() }
    }

    /// Reads the engine's own stack text; frames that are not the guest's are left out. So are the
    /// constructors of the error's own class, `maker`: its author looks for the `new`.
    pub(crate) fn stack(&self, engine: &str, maker: &str) -> Stack {
        let frames: Vec<_> = engine.lines().filter_map(|line| self.frame(line)).collect();
        let made = frames.iter().take(MAX_CONSTRUCTORS).rposition(|(name, _)| *name == maker);
        let shown = frames.get(made.map_or(0, |index| index + 1)..).unwrap_or_default();
        let at = shown.first().map(|(_, position)| *position);
        let frames: Vec<String> = shown
            .iter()
            .take(MAX_FRAMES)
            .map(|(name, at)| format!("at {name} ({}:{})", at.line, at.column))
            .collect();
        Stack { at, text: (!frames.is_empty()).then(|| frames.join("\n")) }
    }

    /// `    at name (<code>:3:7)`, or `    at <code>:3:7` where the engine's parser gave up.
    fn frame<'a>(&self, line: &'a str) -> Option<(&'a str, Position)> {
        let frame = line.trim_start().strip_prefix("at ")?;
        let (name, place) = frame.rsplit_once(" (").unwrap_or(("<main>", frame));
        let place = place.strip_prefix(CODE)?.strip_prefix(':')?;
        let (line, column) = place.strip_suffix(')').unwrap_or(place).split_once(':')?;
        Some((name, self.original(line.parse().ok()?, column.parse().ok()?)?))
    }

    /// `line` and `byte_column` as the engine counts them: in the whole script, from one.
    fn original(&self, line: u32, byte_column: u32) -> Option<Position> {
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

/// Where the byte at `offset` stands in the guest's text.
pub(crate) fn position_of(code: &str, offset: u32) -> Position {
    let before = code.get(..offset as usize).unwrap_or(code);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let lines = before.bytes().filter(|&b| b == b'\n').count();
    Position {
        line: u32::try_from(lines).unwrap_or(u32::MAX).saturating_add(1),
        column: utf16_length(before.get(line_start..).unwrap_or_default()).saturating_add(1),
    }
}

/// Editors count columns so.
fn utf16_length(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
