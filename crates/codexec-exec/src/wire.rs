//! Frames on the worker's socket, read and written piece by piece so that every wait can be
//! given up and taken up again without losing a byte.

use std::collections::VecDeque;
use std::io;

use codexec_types::{FRAME_HEADER_BYTES, FrameError, FromGuest, frame_length};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

const READ_BYTES: usize = 64 << 10;

pub(crate) struct Inbox {
    socket: OwnedReadHalf,
    bytes: Vec<u8>,
    start: usize,
}

impl Inbox {
    pub(crate) fn new(socket: OwnedReadHalf) -> Inbox {
        Inbox { socket, bytes: Vec::new(), start: 0 }
    }

    /// A frame that has arrived whole, if there is one.
    pub(crate) fn take(&mut self) -> Result<Option<FromGuest>, FrameError> {
        let waiting = self.bytes.get(self.start..).unwrap_or_default();
        let Some((header, rest)) = waiting.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = frame_length(*header)?;
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = FromGuest::decode(body)?;
        self.start += FRAME_HEADER_BYTES + length;
        Ok(Some(frame))
    }

    /// Reads more. `false` when the guest has closed its end. Cancel-safe.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.reserve(READ_BYTES);
        Ok(self.socket.read_buf(&mut self.bytes).await? > 0)
    }
}

pub(crate) struct Outbox {
    socket: OwnedWriteHalf,
    frames: VecDeque<Vec<u8>>,
    written: usize,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn new(socket: OwnedWriteHalf) -> Outbox {
        Outbox { socket, frames: VecDeque::new(), written: 0, bytes: 0 }
    }

    pub(crate) fn push(&mut self, frame: Vec<u8>) {
        self.bytes += frame.len();
        self.frames.push_back(frame);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        (self.bytes, self.written) = (0, 0);
    }

    pub(crate) fn waiting_bytes(&self) -> usize {
        self.bytes
    }

    /// Writes some of what waits. Cancel-safe.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        let Some(frame) = self.frames.front() else { return Ok(()) };
        let rest = frame.get(self.written..).unwrap_or_default();
        let count = self.socket.write(rest).await?;
        self.note_written(count);
        Ok(())
    }

    /// Writes what can be written now.
    pub(crate) fn drain_now(&mut self) {
        while let Some(frame) = self.frames.front() {
            let rest = frame.get(self.written..).unwrap_or_default();
            match self.socket.try_write(rest) {
                Ok(count) if count > 0 => self.note_written(count),
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn note_written(&mut self, count: usize) {
        self.written += count;
        if let Some(frame) = self.frames.front()
            && self.written >= frame.len()
        {
            self.bytes -= frame.len();
            self.written = 0;
            self.frames.pop_front();
        }
    }
}
