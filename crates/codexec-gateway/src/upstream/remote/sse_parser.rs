//! Parses server-sent events of bounded size. The data stays bytes: the message reader repairs
//! invalid UTF-8.

use std::time::Duration;

use codexec_types::{BufferedLine, LineBuffer};

/// Longer ids are not kept, so their streams cannot be resumed.
const ID_BYTES: usize = 1 << 10;
/// How much of an oversized event is kept: enough to find its request.
const HEAD_BYTES: usize = 4 << 10;

#[derive(Debug, Default, PartialEq)]
pub(super) struct SseEvent {
    /// Empty means `message`.
    pub(super) kind: String,
    pub(super) data: Vec<u8>,
}

#[derive(Debug, PartialEq)]
pub(super) enum SseItem {
    Event(SseEvent),
    /// An oversized event, returned as soon as it is detected, with the beginning of its data.
    TooLong(Vec<u8>),
}

pub(super) struct SseParser {
    lines: LineBuffer,
    max_bytes: usize,
    current: SseEvent,
    /// True while the rest of an oversized event is skipped.
    is_dropping: bool,
    is_first_line: bool,
    /// The event id from which a broken stream can be resumed.
    pub(super) last_id: Option<String>,
    /// The delay that the server requests before a resume.
    pub(super) retry: Option<Duration>,
}

impl SseParser {
    pub(super) fn new(max_bytes: usize) -> SseParser {
        SseParser {
            // Leaves space for the field name before the data.
            lines: LineBuffer::new(max_bytes.saturating_add(16)),
            max_bytes,
            current: SseEvent::default(),
            is_dropping: false,
            is_first_line: true,
            last_id: None,
            retry: None,
        }
    }

    /// Prepares for a new stream that resumes this one.
    pub(super) fn restart(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = SseParser { last_id, retry, ..SseParser::new(self.max_bytes) };
    }

    /// Adds bytes. Call [`SseParser::next`] afterwards until it returns `None`.
    pub(super) fn push(&mut self, read: &[u8]) {
        self.lines.push(read);
    }

    pub(super) fn next(&mut self) -> Option<SseItem> {
        while let Some(line) = self.lines.next_line() {
            let line = match line {
                BufferedLine::Whole(line) => line,
                BufferedLine::TooLong { head } => {
                    let head = head.strip_prefix(b"data:").unwrap_or(&head).to_vec();
                    self.current = SseEvent::default();
                    if std::mem::replace(&mut self.is_dropping, true) {
                        continue;
                    }
                    return Some(SseItem::TooLong(head));
                }
            };
            let line = if std::mem::take(&mut self.is_first_line) {
                line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line)
            } else {
                &line
            };
            if line.is_empty() {
                self.is_dropping = false;
                let event = std::mem::take(&mut self.current);
                // An event without data is ignored, but its id counts.
                if !event.data.is_empty() {
                    return Some(SseItem::Event(event));
                }
            } else if !self.is_dropping {
                self.read_field(line);
                if self.current.data.len() > self.max_bytes {
                    let mut event = std::mem::take(&mut self.current);
                    event.data.truncate(HEAD_BYTES);
                    self.is_dropping = true;
                    return Some(SseItem::TooLong(event.data));
                }
            }
        }
        None
    }

    fn read_field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if !self.current.data.is_empty() {
                    self.current.data.push(b'\n');
                }
                self.current.data.extend_from_slice(value);
            }
            b"event" => self.current.kind = text(value).unwrap_or_default(),
            b"id" => {
                if let Some(id) = text(value).filter(|id| !id.contains('\0')) {
                    self.last_id = Some(id).filter(|id| !id.is_empty());
                }
            }
            b"retry" => {
                let ms = text(value).and_then(|ms| ms.parse().ok());
                self.retry = ms.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }
}

fn text(value: &[u8]) -> Option<String> {
    let value = value.get(..ID_BYTES).map_or(Some(value), |_| None)?;
    std::str::from_utf8(value).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests;
