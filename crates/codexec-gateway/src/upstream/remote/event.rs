//! A stream of server-sent events, cut into events of bounded size. The data stays bytes: what is
//! not UTF-8 is for the reader of messages to repair.

use std::time::Duration;

use codexec_types::{Line, LineBuffer};

/// An id that is longer is not kept; nobody needs to resume from it.
const ID_BYTES: usize = 1 << 10;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Event {
    /// Empty means `message`.
    pub(super) kind: String,
    pub(super) data: Vec<u8>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Parsed {
    Event(Event),
    /// With the beginning of its data.
    TooLong(Vec<u8>),
}

pub(super) struct Events {
    lines: LineBuffer,
    max_bytes: usize,
    current: Event,
    is_too_long: bool,
    is_first_line: bool,
    /// Where a broken stream can be resumed.
    pub(super) last_id: Option<String>,
    /// How long the server wants us to wait before that.
    pub(super) retry: Option<Duration>,
}

impl Events {
    pub(super) fn new(max_bytes: usize) -> Events {
        Events {
            // The field's name stands before the data.
            lines: LineBuffer::new(max_bytes.saturating_add(16)),
            max_bytes,
            current: Event::default(),
            is_too_long: false,
            is_first_line: true,
            last_id: None,
            retry: None,
        }
    }

    /// A new stream goes on where this one broke off.
    pub(super) fn restart(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = Events { last_id, retry, ..Events::new(self.max_bytes) };
    }

    /// Takes what was read. Call [`Events::next`] until it gives nothing.
    pub(super) fn push(&mut self, read: &[u8]) {
        self.lines.push(read);
    }

    pub(super) fn next(&mut self) -> Option<Parsed> {
        while let Some(line) = self.lines.next_line() {
            let line = match line {
                Line::Whole(line) => line,
                Line::TooLong { head } => {
                    self.is_too_long = true;
                    self.current.data = head.strip_prefix(b"data:").unwrap_or(&head).to_vec();
                    continue;
                }
            };
            let line = if std::mem::take(&mut self.is_first_line) {
                line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line)
            } else {
                &line
            };
            if line.is_empty() {
                let event = std::mem::take(&mut self.current);
                if std::mem::take(&mut self.is_too_long) {
                    return Some(Parsed::TooLong(event.data));
                }
                // Without data it is no event; its id counts all the same.
                if !event.data.is_empty() {
                    return Some(Parsed::Event(event));
                }
            } else {
                self.field(line);
            }
        }
        None
    }

    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" if self.is_too_long => {}
            b"data" => {
                if !self.current.data.is_empty() {
                    self.current.data.push(b'\n');
                }
                self.current.data.extend_from_slice(value);
                if self.current.data.len() > self.max_bytes {
                    self.current.data.truncate(ID_BYTES);
                    self.current.data.shrink_to_fit();
                    self.is_too_long = true;
                }
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
