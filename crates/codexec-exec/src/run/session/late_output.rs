//! Output that belongs to no running cell.

use std::collections::VecDeque;

use codexec_types::{OutputStream, RunEvent};

/// Maximum bytes kept of each stream.
const LATE_BYTES: usize = 32 << 10;

/// Output written between two cells, or by processes that an earlier cell left running.
#[derive(Default)]
pub(super) struct LateOutput {
    out: LateStream,
    err: LateStream,
}

/// The first bytes of one stream, and the number of bytes dropped after them.
#[derive(Default)]
struct LateStream {
    text: String,
    left_out_bytes: u64,
}

impl LateOutput {
    pub(super) fn push(&mut self, stream: OutputStream, text: &str) {
        let tail = match stream {
            OutputStream::Out => &mut self.out,
            OutputStream::Err => &mut self.err,
        };
        let free = LATE_BYTES.saturating_sub(tail.text.len());
        let (stored, rest) = text.split_at(text.floor_char_boundary(free));
        tail.text.push_str(stored);
        tail.left_out_bytes += rest.len() as u64;
    }

    /// THREAT[SES-2]: returns it as marked output at the start of the next cell.
    pub(super) fn take_since_last_reply(&mut self) -> VecDeque<RunEvent> {
        self.take_marked("[codexec] written after the last reply:\n", "[codexec] this reply:\n")
    }

    /// THREAT[SES-10]: returns it as marked output at the end of the cell that ran meanwhile.
    pub(super) fn take_meanwhile(&mut self) -> VecDeque<RunEvent> {
        self.take_marked("[codexec] written meanwhile by what earlier code left running:\n", "")
    }

    fn take_marked(&mut self, head: &str, end: &str) -> VecDeque<RunEvent> {
        let LateOutput { out, err } = std::mem::take(self);
        let both = [(OutputStream::Out, out), (OutputStream::Err, err)].into_iter();
        let event = |(stream, tail): (OutputStream, LateStream)| {
            let text = tail.format_marked(head, end)?;
            Some(RunEvent::Output { stream, text })
        };
        both.filter_map(event).collect()
    }
}

impl LateStream {
    fn format_marked(self, head: &str, end: &str) -> Option<String> {
        if self.text.is_empty() {
            return None;
        }
        let mut text = format!("{head}{}", self.text);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if self.left_out_bytes > 0 {
            text.push_str(&format!("[codexec] and {} bytes more\n", self.left_out_bytes));
        }
        text.push_str(end);
        Some(text)
    }
}

#[cfg(test)]
mod tests;
