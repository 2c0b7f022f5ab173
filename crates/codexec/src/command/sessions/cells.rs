//! Splits input lines into cells.

use codexec_types::Language;

/// Collects input lines into cells.
pub(super) struct CellSplitter {
    language: Language,
    /// True if a person types the lines at a terminal.
    is_typed: bool,
    pending: Vec<String>,
    blanks: usize,
}

impl CellSplitter {
    pub(super) fn new(language: Language, is_typed: bool) -> CellSplitter {
        CellSplitter { language, is_typed, pending: Vec::new(), blanks: 0 }
    }

    /// Returns true if the next line continues a cell.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Adds a line. Returns the cell that is now complete.
    pub(super) fn push(&mut self, line: &str) -> Option<String> {
        if self.is_typed { self.push_typed(line) } else { self.push_piped(line) }
    }

    /// Returns the unfinished cell, if any.
    pub(super) fn take_rest(&mut self) -> Option<String> {
        self.blanks = 0;
        let pending = std::mem::take(&mut self.pending);
        (!pending.is_empty()).then(|| pending.join("\n"))
    }

    fn push_typed(&mut self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            return self.take_rest();
        }
        let goes_on = self.has_pending() || self.starts_block(line);
        self.pending.push(line.to_owned());
        if goes_on { None } else { self.take_rest() }
    }

    fn push_piped(&mut self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            self.blanks += usize::from(self.has_pending());
            return None;
        }
        let goes_on = self.blanks == 0 || line.starts_with([' ', '\t', '}', ')', ']']);
        let done = if goes_on { None } else { self.take_rest() };
        let blanks = std::mem::take(&mut self.blanks);
        self.pending.extend(std::iter::repeat_n(String::new(), blanks));
        self.pending.push(line.to_owned());
        done
    }

    fn starts_block(&self, line: &str) -> bool {
        let line = line.trim_end();
        let is_shell = self.language == Language::Bash;
        let word = line.rsplit([' ', ';']).next().unwrap_or_default();
        line.ends_with([':', '{', '(', '[', ',', '\\'])
            || line.trim_start().starts_with('@')
            || (is_shell && matches!(word, "do" | "then" | "else" | "in"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(language: Language, is_typed: bool, lines: &[&str], expected: &[&str]) {
        let mut cells = CellSplitter::new(language, is_typed);
        let mut found: Vec<String> = lines.iter().filter_map(|line| cells.push(line)).collect();
        found.extend(cells.take_rest());
        assert_eq!(found, expected);
    }

    #[test]
    fn a_typed_line_is_a_cell_unless_it_starts_a_block() {
        let python = ["x = 1", "", "def f():", "  return 2", "", "f()"];
        check(Language::Python, true, &python, &["x = 1", "def f():\n  return 2", "f()"]);
        check(Language::JavaScript, true, &["f({", "a})", ""], &["f({\na})"]);
        check(
            Language::Bash,
            true,
            &["for x in 1; do", "echo", "done", "", "ls"],
            &["for x in 1; do\necho\ndone", "ls"],
        );
        check(Language::Python, true, &["print('do')", "to do"], &["print('do')", "to do"]);
        check(Language::Python, true, &["if x:", "  y"], &["if x:\n  y"]);
    }

    #[test]
    fn empty_lines_separate_piped_cells() {
        let python = ["", "def f():", "  a", "", "", "  b", "", "f()", "g()", "", ""];
        check(Language::Python, false, &python, &["def f():\n  a\n\n\n  b", "f()\ng()"]);
        check(Language::JavaScript, false, &["f({", "", "});", " ", "1"], &["f({\n\n});", "1"]);
        check(Language::Python, false, &[], &[]);
    }
}
