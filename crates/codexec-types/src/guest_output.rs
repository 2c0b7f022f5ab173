use serde::{Deserialize, Serialize};

use crate::OutputStream;

/// A guest's output on both streams, in order, and which parts of it went to stderr.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestOutput {
    text: String,
    /// Byte ranges of the text, `[from, to)`, sorted and not adjacent.
    errors: Vec<(usize, usize)>,
}

impl GuestOutput {
    /// Restores output that was stored.
    pub fn new(text: String, errors: Vec<(usize, usize)>) -> GuestOutput {
        GuestOutput { text, errors }
    }

    pub fn push(&mut self, stream: OutputStream, text: &str) {
        let from = self.text.len();
        self.text.push_str(text);
        if stream == OutputStream::Out || text.is_empty() {
            return;
        }
        match self.errors.last_mut() {
            Some((_, to)) if *to == from => *to = self.text.len(),
            Some(_) | None => self.errors.push((from, self.text.len())),
        }
    }

    /// Returns the output of both streams, in order.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn errors(&self) -> &[(usize, usize)] {
        &self.errors
    }

    pub fn stdout(&self) -> String {
        let mut out = String::with_capacity(self.text.len());
        let mut from = 0;
        for (start, end) in &self.errors {
            out.push_str(self.text.get(from..*start).unwrap_or_default());
            from = *end;
        }
        out.push_str(self.text.get(from..).unwrap_or_default());
        out
    }

    pub fn stderr(&self) -> String {
        self.errors.iter().filter_map(|(start, end)| self.text.get(*start..*end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_can_be_separated_again() {
        let mut written = GuestOutput::default();
        written.push(OutputStream::Err, "a");
        written.push(OutputStream::Out, "1");
        written.push(OutputStream::Err, "b");
        written.push(OutputStream::Err, "c");
        written.push(OutputStream::Out, "2");
        assert_eq!(written.text(), "a1bc2");
        assert_eq!(written.errors(), [(0, 1), (2, 4)]);
        assert_eq!((written.stdout().as_str(), written.stderr().as_str()), ("12", "abc"));
        let kept = GuestOutput::new("xy".to_owned(), vec![(1, 9)]);
        assert_eq!((kept.stdout().as_str(), kept.stderr().as_str()), ("x", ""));
    }
}
