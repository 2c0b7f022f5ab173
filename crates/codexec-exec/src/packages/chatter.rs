use codexec_types::Stream;

/// The output of an installer, bounded.
#[derive(Debug, Default)]
pub(super) struct Chatter {
    out: Kept,
    err: Kept,
    told: usize,
}

#[derive(Debug, Default)]
struct Kept {
    text: String,
    /// True if earlier text was dropped.
    has_more: bool,
    /// The current line, not complete yet.
    line: String,
}

/// The end of the output is kept.
const KEPT_BYTES: usize = 64 << 10;
const LINE_CHARS: usize = 200;
/// Maximum number of progress messages.
const MAX_TOLD: usize = 500;

impl Chatter {
    pub(super) fn add(&mut self, stream: Stream, text: &str, progress: &(dyn Fn(&str) + Sync)) {
        let kept = match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        kept.keep(text);
        for piece in text.split_inclusive('\n') {
            kept.line.extend(piece.chars().filter(|c| !c.is_control()).take(LINE_CHARS));
            if piece.ends_with('\n') || kept.line.len() > 4 * LINE_CHARS {
                let line: String = kept.line.trim().chars().take(LINE_CHARS).collect();
                kept.line.clear();
                if !line.is_empty() && self.told < MAX_TOLD {
                    self.told += 1;
                    progress(&line);
                }
            }
        }
    }

    pub(super) fn out(&self) -> &str {
        &self.out.text
    }

    /// Returns both streams, for people.
    pub(super) fn text(&self) -> String {
        let parts = [&self.out, &self.err].map(|kept| {
            let cut = if kept.has_more { "[..]\n" } else { "" };
            format!("{cut}{}", kept.text)
        });
        parts.concat()
    }

    /// Returns the lines with error messages, or else the last lines.
    pub(super) fn complaint(&self) -> String {
        let is_complaint = |line: &&str| {
            let line = line.trim_start().to_ascii_lowercase();
            line.starts_with("error")
                || line.starts_with("cause")
                || line.starts_with("npm error")
                || line.starts_with("npm err!")
        };
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let complaints: Vec<&str> = lines.iter().copied().filter(is_complaint).take(5).collect();
        let last = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default();
        let chosen = if complaints.is_empty() { last } else { complaints.as_slice() };
        let said = chosen.join("; ");
        let said: String = said.chars().filter(|c| !c.is_control()).take(1_000).collect();
        if said.is_empty() { "the installer said nothing".to_owned() } else { said }
    }
}

impl Kept {
    fn keep(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > 2 * KEPT_BYTES {
            let from = self.text.ceil_char_boundary(self.text.len() - KEPT_BYTES);
            self.text.drain(..from);
            self.has_more = true;
        }
    }
}

#[cfg(test)]
mod tests;
