use codexec_types::OutputStream;

/// The output of an installer, bounded.
#[derive(Debug, Default)]
pub(super) struct InstallerOutput {
    out: StreamTail,
    err: StreamTail,
    reported: usize,
}

#[derive(Debug, Default)]
struct StreamTail {
    text: String,
    /// True if earlier text was dropped.
    is_cut: bool,
    /// The current line, not complete yet.
    line: String,
}

/// The end of the output is kept.
const TAIL_BYTES: usize = 64 << 10;
const LINE_CHARS: usize = 200;
/// Maximum number of progress messages.
const MAX_REPORTED: usize = 500;

impl InstallerOutput {
    pub(super) fn add(
        &mut self,
        stream: OutputStream,
        text: &str,
        progress: &(dyn Fn(&str) + Sync),
    ) {
        let tail = match stream {
            OutputStream::Out => &mut self.out,
            OutputStream::Err => &mut self.err,
        };
        tail.push(text);
        for piece in text.split_inclusive('\n') {
            tail.line.extend(piece.chars().filter(|c| !c.is_control()).take(LINE_CHARS));
            if piece.ends_with('\n') || tail.line.len() > 4 * LINE_CHARS {
                let line: String = tail.line.trim().chars().take(LINE_CHARS).collect();
                tail.line.clear();
                if !line.is_empty() && self.reported < MAX_REPORTED {
                    self.reported += 1;
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
        let parts = [&self.out, &self.err].map(|tail| {
            let cut = if tail.is_cut { "[..]\n" } else { "" };
            format!("{cut}{}", tail.text)
        });
        parts.concat()
    }

    /// Returns the lines with error messages, or else the last lines.
    pub(super) fn error_lines(&self) -> String {
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
        if said.is_empty() { "the installer printed nothing".to_owned() } else { said }
    }
}

impl StreamTail {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        if self.text.len() > 2 * TAIL_BYTES {
            let from = self.text.ceil_char_boundary(self.text.len() - TAIL_BYTES);
            self.text.drain(..from);
            self.is_cut = true;
        }
    }
}

#[cfg(test)]
mod tests;
