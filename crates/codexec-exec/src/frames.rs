//! Frames on the worker's socket. Reads and writes are incremental, so that every wait can be
//! cancelled and resumed without losing a byte.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use codexec_sandbox::{read_attributed, write_with_fds};
use codexec_types::{
    CallCode, CallError, FRAME_HEADER_BYTES, FrameError, FromGuest, LONG_FRAME_BYTES,
    MAX_ASK_BYTES, find_first_field, frame_length,
};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::{JoinHandle, spawn_blocking};

const READ_BYTES: usize = 64 << 10;

/// Number of bytes of an oversized ask that are read to find its id.
const ASK_HEAD_BYTES: usize = 128;

pub(crate) struct FrameInbox {
    socket: OwnedReadHalf,
    source: FrameSource,
    /// Bytes written by processes other than the source.
    foreign_bytes: usize,
    /// Holds bytes until their sender is known.
    unattributed: Vec<u8>,
    bytes: Vec<u8>,
    start: usize,
    /// Remaining bytes of a frame that is dropped unread.
    skipping: usize,
    /// A long frame that is being decoded on another thread. Later frames wait for it.
    decoding: Option<JoinHandle<Result<ReceivedFrame, FrameError>>>,
    decoded: Option<Result<ReceivedFrame, FrameError>>,
}

/// A frame, with what the host has to know before it acts on it.
pub(crate) enum ReceivedFrame {
    Frame(FromGuest),
    /// An ask and its weight while it waits for an answer.
    Ask(FromGuest, usize),
    /// An ask that was rejected without being decoded.
    Refused(u32, CallError),
}

/// The process whose bytes are accepted as frames.
///
/// THREAT[SES-8]: a process that the guest has started may hold the guest's socket; its bytes are
/// ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameSource {
    /// Any holder of the socket: the guest of a single execution is responsible for all its
    /// processes.
    AnyProcess,
    /// The process with this id on the host.
    Process(i32),
    /// The first child of the worker's init; its id is not known before its first write.
    FirstChild,
}

/// Limit of bytes from other processes; more is taken as an attempt to keep the host busy.
const MAX_FOREIGN_BYTES: usize = 64 << 10;

impl FrameInbox {
    pub(crate) fn new(socket: OwnedReadHalf, source: FrameSource) -> FrameInbox {
        FrameInbox {
            socket,
            source,
            foreign_bytes: 0,
            unattributed: Vec::new(),
            bytes: Vec::new(),
            start: 0,
            skipping: 0,
            decoding: None,
            decoded: None,
        }
    }

    /// Returns the next frame if it has arrived completely and is decoded.
    pub(crate) fn take(&mut self) -> Result<Option<ReceivedFrame>, FrameError> {
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
        // THREAT[ORD-3]: long frames are decoded off the event loop.
        let body = body.to_vec();
        self.start += FRAME_HEADER_BYTES + length;
        self.decoding = Some(spawn_blocking(move || receive(&body)));
        Ok(None)
    }

    /// Returns the next frame that has arrived completely, and waits while a long one is decoded.
    pub(crate) async fn take_arrived(&mut self) -> Result<Option<ReceivedFrame>, FrameError> {
        loop {
            match self.take()? {
                None if self.decoding.is_some() => {
                    // Waits for the decoding and reads nothing.
                    let _ = self.fill().await;
                }
                taken => return Ok(taken),
            }
        }
    }

    /// THREAT[ORD-1]: an ask that is too long is dropped while it arrives.
    fn skip_ask(&mut self, length: usize) -> Result<ReceivedFrame, FrameError> {
        let body = self.start + FRAME_HEADER_BYTES;
        let head = self.bytes.get(body..body + ASK_HEAD_BYTES).unwrap_or_default();
        let id = id_of_long_ask(head).ok_or(FrameError::Malformed)?;
        let here = self.bytes.len().saturating_sub(body).min(length);
        self.start = body + here;
        self.skipping = length - here;
        Ok(ReceivedFrame::Refused(id, oversized_ask_error(length)))
    }

    /// Reads more bytes. Returns `false` when the guest has closed its end. Cancel-safe.
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
        let is_open = self.read().await?;
        let skipped = self.skipping.min(self.bytes.len());
        self.skipping -= skipped;
        self.start = skipped;
        Ok(is_open)
    }

    /// Appends the bytes of the source to the buffer. Bytes of other processes are counted and
    /// dropped.
    async fn read(&mut self) -> io::Result<bool> {
        if self.source == FrameSource::AnyProcess {
            self.bytes.reserve(READ_BYTES);
            return Ok(self.socket.read_buf(&mut self.bytes).await? > 0);
        }
        self.unattributed.resize(READ_BYTES, 0);
        let (socket, unattributed) = (self.socket.as_ref(), &mut self.unattributed);
        let read = || read_attributed(socket.as_fd(), unattributed);
        let (count, from) = socket.async_io(Interest::READABLE, read).await?;
        let is_source = self.source.is(from);
        if let (FrameSource::FirstChild, true) = (self.source, is_source) {
            self.source = FrameSource::Process(from);
        }
        if is_source {
            self.bytes.extend_from_slice(self.unattributed.get(..count).unwrap_or_default());
        } else {
            self.foreign_bytes += count;
        }
        Ok(count > 0 || from != 0)
    }

    /// True if other processes have written more than is tolerated.
    pub(crate) fn is_flooded(&self) -> bool {
        self.foreign_bytes > MAX_FOREIGN_BYTES
    }
}

fn receive(body: &[u8]) -> Result<ReceivedFrame, FrameError> {
    match FromGuest::decode(body)? {
        FromGuest::Ask { id, ask } => Ok(match ask.estimate_size() {
            Ok(weight) => ReceivedFrame::Ask(FromGuest::Ask { id, ask }, weight),
            Err(error) => ReceivedFrame::Refused(id, error),
        }),
        frame => Ok(ReceivedFrame::Frame(frame)),
    }
}

impl FrameSource {
    fn is(self, pid: i32) -> bool {
        match self {
            FrameSource::AnyProcess => true,
            FrameSource::Process(source) => source == pid,
            FrameSource::FirstChild => is_first_child(pid),
        }
    }
}

/// True if the process is number 2 of its pid namespace, that is, the first child of its init.
pub(crate) fn is_first_child(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.is_some_and(|ids| ids.split_whitespace().nth(1).is_some() && ids.trim().ends_with("\t2"))
}

pub(crate) struct FrameOutbox {
    socket: OwnedWriteHalf,
    frames: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    written: usize,
    bytes: usize,
}

impl FrameOutbox {
    pub(crate) fn new(socket: OwnedWriteHalf) -> FrameOutbox {
        FrameOutbox { socket, frames: VecDeque::new(), written: 0, bytes: 0 }
    }

    pub(crate) fn push(&mut self, frame: Vec<u8>) {
        self.push_with(frame, Vec::new());
    }

    /// Queues a frame together with file descriptors.
    pub(crate) fn push_with(&mut self, frame: Vec<u8>, fds: Vec<OwnedFd>) {
        self.bytes += frame.len();
        self.frames.push_back((frame, fds));
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

    /// Writes part of the queue. Cancel-safe.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        let socket = self.socket.as_ref();
        let write = || self.write_some();
        let count = socket.async_io(Interest::WRITABLE, write).await?;
        self.note_written(count);
        Ok(())
    }

    /// Writes part of the first frame. Descriptors are sent with its first byte.
    fn write_some(&self) -> io::Result<usize> {
        let Some((frame, fds)) = self.frames.front() else { return Ok(0) };
        let rest = frame.get(self.written..).unwrap_or_default();
        let fds: Vec<_> = fds.iter().map(OwnedFd::as_fd).collect();
        let now = if self.written == 0 { fds.as_slice() } else { &[] };
        write_with_fds(self.socket.as_ref().as_fd(), rest, now)
    }

    /// Writes as much as the socket takes without waiting.
    pub(crate) fn drain_now(&mut self) {
        while !self.frames.is_empty() {
            match self.socket.as_ref().try_io(Interest::WRITABLE, || self.write_some()) {
                Ok(count) if count > 0 => self.note_written(count),
                Ok(_) | Err(_) => return,
            }
        }
    }

    fn note_written(&mut self, count: usize) {
        self.written += count;
        if let Some((frame, _)) = self.frames.front()
            && self.written >= frame.len()
        {
            self.bytes -= frame.len();
            self.written = 0;
            self.frames.pop_front();
        }
    }
}

/// True if a frame with this beginning is an ask.
fn is_ask(body: &[u8]) -> bool {
    body.starts_with(br#"{"ask":"#)
}

/// Returns the error that the guest gets for an oversized ask.
fn oversized_ask_error(bytes: usize) -> CallError {
    let message =
        format!("arguments: {bytes} bytes; at most {MAX_ASK_BYTES} are allowed in one call");
    CallError::new(CallCode::InvalidArgs, message)
}

/// Returns the id of an oversized ask, read from the first bytes of its frame.
fn id_of_long_ask(head: &[u8]) -> Option<u32> {
    let (_, ask) = find_first_field(head, &["ask"])?;
    let (_, id) = find_first_field(ask, &["id"])?;
    let digits = id.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(id.get(..digits)?).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
