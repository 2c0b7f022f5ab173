//! Cutting a byte stream into lines without ever holding more than one line's worth.

/// Collects bytes and gives whole lines. A line over the limit is dropped while it arrives, so
/// a peer that never ends its line costs no memory.
#[derive(Debug)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    searched: usize,
    max_bytes: usize,
    dropped: u64,
}

/// What came out of a [`LineBuffer`].
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its end (`\n` or `\r\n`).
    Whole(Vec<u8>),
    /// It was longer than the limit. Only its beginning was kept, to find out whose it was.
    TooLong { head: Vec<u8>, bytes: u64 },
}

/// How much of a dropped line is kept.
const HEAD_BYTES: usize = 64 << 10;

impl LineBuffer {
    pub fn new(max_bytes: usize) -> LineBuffer {
        LineBuffer { bytes: Vec::new(), searched: 0, max_bytes, dropped: 0 }
    }

    /// Takes what was read. Call [`LineBuffer::next_line`] until it gives nothing.
    pub fn push(&mut self, read: &[u8]) {
        let end = read.iter().position(|&b| b == b'\n');
        if self.dropped > 0 {
            // Still inside a line that was given up.
            let skipped = end.unwrap_or(read.len());
            self.dropped += skipped as u64;
            self.bytes.extend_from_slice(read.get(skipped..).unwrap_or_default());
            return;
        }
        self.bytes.extend_from_slice(read);
        if end.is_none() && self.bytes.len() > self.max_bytes && !self.bytes.contains(&b'\n') {
            self.dropped = self.bytes.len() as u64;
            self.bytes.truncate(HEAD_BYTES.min(self.max_bytes));
            self.bytes.shrink_to_fit();
            self.searched = self.bytes.len();
        }
    }

    pub fn next_line(&mut self) -> Option<Line> {
        let rest = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(found) = rest.iter().position(|&b| b == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let tail = self.bytes.split_off(self.searched + found + 1);
        let mut line = std::mem::replace(&mut self.bytes, tail);
        self.searched = 0;
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            return Some(Line::TooLong { head: line, bytes: dropped });
        }
        if line.len() > self.max_bytes {
            let bytes = line.len() as u64;
            line.truncate(HEAD_BYTES.min(self.max_bytes));
            return Some(Line::TooLong { head: line, bytes });
        }
        Some(Line::Whole(line))
    }

    /// How many bytes are held.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests;
