//! Splits a byte stream into lines and never buffers more than one line.

/// Collects bytes and returns complete lines. A line that exceeds the limit is reported once, and
/// the rest of it is discarded as it arrives: a peer that never ends its line costs no memory.
#[derive(Debug)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Everything before this offset has been returned.
    start: usize,
    /// There is no newline before this offset.
    searched: usize,
    max_bytes: usize,
    is_dropping: bool,
}

/// A line returned by [`LineBuffer::next_line`].
#[derive(Debug, PartialEq, Eq)]
pub enum BufferedLine {
    /// The line without its terminator (`\n` or `\r\n`).
    Whole(Vec<u8>),
    /// A line over the limit, which may never end. Its head identifies the request it belongs to.
    TooLong { head: Vec<u8> },
}

/// Number of bytes kept of a line that is too long.
const HEAD_BYTES: usize = 4 << 10;

impl LineBuffer {
    pub fn new(max_bytes: usize) -> LineBuffer {
        LineBuffer { bytes: Vec::new(), start: 0, searched: 0, max_bytes, is_dropping: false }
    }

    /// Appends bytes that were read. Call [`LineBuffer::next_line`] until it returns `None`.
    pub fn push(&mut self, read: &[u8]) {
        if !self.is_dropping {
            self.bytes.extend_from_slice(read);
        } else if let Some(end) = read.iter().position(|&byte| byte == b'\n') {
            self.is_dropping = false;
            self.bytes.extend_from_slice(read.get(end + 1..).unwrap_or_default());
        }
    }

    pub fn next_line(&mut self) -> Option<BufferedLine> {
        let unseen = self.bytes.get(self.searched..).unwrap_or_default();
        if let Some(found) = unseen.iter().position(|&byte| byte == b'\n') {
            let end = self.searched + found;
            let line = self.bytes.get(self.start..end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let line = if line.len() > self.max_bytes {
                too_long(line)
            } else {
                BufferedLine::Whole(line.to_vec())
            };
            self.start = end + 1;
            self.searched = self.start;
            return Some(line);
        }
        self.bytes.drain(..self.start);
        self.start = 0;
        self.searched = self.bytes.len();
        if self.bytes.len() <= self.max_bytes {
            return None;
        }
        let line = too_long(&self.bytes);
        self.bytes = Vec::new();
        self.searched = 0;
        self.is_dropping = true;
        Some(line)
    }

    /// Returns the size of the buffer.
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

fn too_long(line: &[u8]) -> BufferedLine {
    BufferedLine::TooLong { head: line.get(..HEAD_BYTES).unwrap_or(line).to_vec() }
}

#[cfg(test)]
mod tests;
