//! Frames on the worker's socket, read and written piece by piece so that every wait can be
//! given up and taken up again without losing a byte.

use std::collections::VecDeque;
use std::io;

use codexec_types::{
    ASK_HEAD_BYTES, CallError, FRAME_HEADER_BYTES, FrameError, FromGuest, LONG_FRAME_BYTES,
    MAX_ASK_BYTES, frame_length, id_of_long_ask, is_ask, refuse_long_ask,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::{JoinHandle, spawn_blocking};

const READ_BYTES: usize = 64 << 10;

pub(crate) struct Inbox {
    socket: OwnedReadHalf,
    bytes: Vec<u8>,
    start: usize,
    /// Bytes of a frame that nobody will look at.
    skipping: usize,
    /// A long frame that is being taken apart. What comes after it waits.
    decoding: Option<JoinHandle<Result<Received, FrameError>>>,
    decoded: Option<Result<Received, FrameError>>,
}

/// A frame, and what the host has to know of it before it does anything.
pub(crate) enum Received {
    Frame(FromGuest),
    /// With what the ask weighs while it waits.
    Ask(FromGuest, usize),
    /// An ask that is not even looked at.
    Refused(u32, CallError),
}

impl Inbox {
    pub(crate) fn new(socket: OwnedReadHalf) -> Inbox {
        let (bytes, decoding, decoded) = (Vec::new(), None, None);
        Inbox { socket, bytes, start: 0, skipping: 0, decoding, decoded }
    }

    /// A frame that has arrived whole and is taken apart, if there is one.
    pub(crate) fn take(&mut self) -> Result<Option<Received>, FrameError> {
        if let Some(decoded) = self.decoded.take() {
            return decoded.map(Some);
        }
        if self.skipping > 0 || self.decoding.is_some() {
            return Ok(None);
        }
        let waiting = self.bytes.get(self.start..).unwrap_or_default();
        let Some((header, rest)) = waiting.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = frame_length(*header)?;
        if length > MAX_ASK_BYTES && rest.len() >= ASK_HEAD_BYTES && is_ask(rest) {
            return self.skip_ask(length).map(Some);
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        if length <= LONG_FRAME_BYTES {
            let received = receive(body);
            self.start += FRAME_HEADER_BYTES + length;
            return received.map(Some);
        }
        // THREAT[ORD-3]: what takes long to take apart is taken apart beside the event loop.
        let body = body.to_vec();
        self.start += FRAME_HEADER_BYTES + length;
        self.decoding = Some(spawn_blocking(move || receive(&body)));
        Ok(None)
    }

    /// The next frame of those that have arrived whole, however long it is.
    pub(crate) async fn take_arrived(&mut self) -> Result<Option<Received>, FrameError> {
        loop {
            match self.take()? {
                None if self.decoding.is_some() => {
                    // Waits for the frame and reads nothing.
                    let _ = self.fill().await;
                }
                taken => return Ok(taken),
            }
        }
    }

    /// THREAT[ORD-1]: an ask that is too long is dropped while it arrives.
    fn skip_ask(&mut self, length: usize) -> Result<Received, FrameError> {
        let body = self.start + FRAME_HEADER_BYTES;
        let head = self.bytes.get(body..body + ASK_HEAD_BYTES).unwrap_or_default();
        let id = id_of_long_ask(head).ok_or(FrameError::Malformed)?;
        let here = self.bytes.len().saturating_sub(body).min(length);
        self.start = body + here;
        self.skipping = length - here;
        Ok(Received::Refused(id, refuse_long_ask(length)))
    }

    /// Reads more. `false` when the guest has closed its end. Cancel-safe.
    pub(crate) async fn fill(&mut self) -> io::Result<bool> {
        if let Some(decoding) = &mut self.decoding {
            let decoded = decoding.await.unwrap_or(Err(FrameError::Malformed));
            self.decoding = None;
            self.decoded = Some(decoded);
            return Ok(true);
        }
        self.bytes.drain(..self.start);
        self.start = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > 2 * READ_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.reserve(READ_BYTES);
        let is_open = self.socket.read_buf(&mut self.bytes).await? > 0;
        let skipped = self.skipping.min(self.bytes.len());
        self.skipping -= skipped;
        self.start = skipped;
        Ok(is_open)
    }
}

fn receive(body: &[u8]) -> Result<Received, FrameError> {
    match FromGuest::decode(body)? {
        FromGuest::Ask { id, ask } => Ok(match ask.weigh() {
            Ok(weight) => Received::Ask(FromGuest::Ask { id, ask }, weight),
            Err(error) => Received::Refused(id, error),
        }),
        frame => Ok(Received::Frame(frame)),
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
