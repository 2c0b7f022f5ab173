//! The last lines that running code has printed, for clients that watch.

use std::collections::VecDeque;

/// Number of lines that a notification has at most; of more, the last ones.
const MAX_LINES: usize = 20;
/// Longer lines are cut.
const MAX_LINE_CHARS: usize = 200;

/// The last complete lines of an output that grows.
#[derive(Clone, Debug, Default)]
pub struct OutputLines {
    lines: VecDeque<String>,
    /// The number of all lines so far.
    count: u64,
    /// A line whose end has not been printed yet.
    unfinished: String,
}

impl OutputLines {
    /// Adds what the code has printed. Takes time for the last lines only, however long the text is.
    pub(crate) fn push(&mut self, text: &str) {
        let Some((complete, rest)) = text.rsplit_once('\n') else {
            extend_line(&mut self.unfinished, text);
            return;
        };
        let count = complete.bytes().filter(|byte| *byte == b'\n').count() + 1;
        self.count += count as u64;
        let mut last: Vec<&str> = complete.rsplit('\n').take(MAX_LINES).collect();
        last.reverse();
        let mut line = std::mem::take(&mut self.unfinished);
        // The unfinished line is the start of the first one, unless that one is left out.
        if count > MAX_LINES {
            line.clear();
        }
        for text in last {
            extend_line(&mut line, text);
            if self.lines.len() == MAX_LINES {
                self.lines.pop_front();
            }
            self.lines.push_back(std::mem::take(&mut line));
        }
        extend_line(&mut self.unfinished, rest);
    }

    /// Returns the number of lines so far, and the last of those after the first `seen` ones.
    pub(crate) fn after(&self, seen: u64) -> (u64, Option<String>) {
        let new = usize::try_from(self.count - seen.min(self.count)).unwrap_or(usize::MAX);
        let skipped = self.lines.len().saturating_sub(new);
        let lines: Vec<&str> = self.lines.iter().skip(skipped).map(String::as_str).collect();
        (self.count, (!lines.is_empty()).then(|| lines.join("\n")))
    }
}

fn extend_line(line: &mut String, text: &str) {
    let room = MAX_LINE_CHARS.saturating_sub(line.chars().count());
    line.extend(text.chars().take(room));
}

#[cfg(test)]
mod tests;
