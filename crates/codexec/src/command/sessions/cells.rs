use codexec_types::Language;

/// Lines on their way to be cells.
pub(super) struct Cells {
    language: Language,
    /// A person types them, and waits for the answer to each.
    is_typed: bool,
    held: Vec<String>,
    blanks: usize,
}

impl Cells {
    pub(super) fn new(language: Language, is_typed: bool) -> Cells {
        Cells { language, is_typed, held: Vec::new(), blanks: 0 }
    }

    /// Whether the next line belongs to a cell that has begun.
    pub(super) fn is_begun(&self) -> bool {
        !self.held.is_empty()
    }

    /// The cell that is complete with this line.
    pub(super) fn push(&mut self, line: &str) -> Option<String> {
        if self.is_typed { self.typed(line) } else { self.piped(line) }
    }

    /// What is left at the end.
    pub(super) fn rest(&mut self) -> Option<String> {
        self.blanks = 0;
        let held = std::mem::take(&mut self.held);
        (!held.is_empty()).then(|| held.join("\n"))
    }

    fn typed(&mut self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            return self.rest();
        }
        let goes_on = self.is_begun() || self.begins_block(line);
        self.held.push(line.to_owned());
        if goes_on { None } else { self.rest() }
    }

    fn piped(&mut self, line: &str) -> Option<String> {
        if line.trim().is_empty() {
            self.blanks += usize::from(self.is_begun());
            return None;
        }
        let goes_on = self.blanks == 0 || line.starts_with([' ', '\t', '}', ')', ']']);
        let done = if goes_on { None } else { self.rest() };
        let blanks = std::mem::take(&mut self.blanks);
        self.held.extend(std::iter::repeat_n(String::new(), blanks));
        self.held.push(line.to_owned());
        done
    }

    fn begins_block(&self, line: &str) -> bool {
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
        let mut cells = Cells::new(language, is_typed);
        let mut found: Vec<String> = lines.iter().filter_map(|line| cells.push(line)).collect();
        found.extend(cells.rest());
        assert_eq!(found, expected);
    }

    #[test]
    fn a_typed_line_is_a_cell_unless_it_begins_a_block() {
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
    fn piped_cells_have_empty_lines_between_them() {
        let python = ["", "def f():", "  a", "", "", "  b", "", "f()", "g()", "", ""];
        check(Language::Python, false, &python, &["def f():\n  a\n\n\n  b", "f()\ng()"]);
        check(Language::JavaScript, false, &["f({", "", "});", " ", "1"], &["f({\n\n});", "1"]);
        check(Language::Python, false, &[], &[]);
    }
}
