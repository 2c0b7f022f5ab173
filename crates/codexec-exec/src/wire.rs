//! Frames on the worker's socket, read and written piece by piece so that every wait can be
//! given up and taken up again without losing a byte.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use codexec_sandbox::{read_attributed, write_with};
use codexec_types::{
    ASK_HEAD_BYTES, CallError, FRAME_HEADER_BYTES, FrameError, FromGuest, LONG_FRAME_BYTES,
    MAX_ASK_BYTES, frame_length, id_of_long_ask, is_ask, refuse_long_ask,
};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::{JoinHandle, spawn_blocking};

const READ_BYTES: usize = 64 << 10;

pub(crate) struct Inbox {
    socket: OwnedReadHalf,
    speaker: Speaker,
    /// What others than the speaker have written.
    foreign_bytes: usize,
    /// What is read before it is known whose it is.
    room: Vec<u8>,
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

/// Whose bytes are frames.
///
/// THREAT[SES-8]: a process that a guest has started may have its socket, and is not listened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// Whoever has the socket: a guest of one execution answers for all that it starts.
    Anybody,
    /// This process on the host.
    Process(i32),
    /// The first child of a worker's first process: not known before it speaks.
    FirstChild,
}

/// Who else writes this much wants to keep us busy.
const MAX_FOREIGN_BYTES: usize = 64 << 10;

impl Inbox {
    pub(crate) fn new(socket: OwnedReadHalf, speaker: Speaker) -> Inbox {
        Inbox {
            socket,
            speaker,
            foreign_bytes: 0,
            room: Vec::new(),
            bytes: Vec::new(),
            start: 0,
            skipping: 0,
            decoding: None,
            decoded: None,
        }
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
        let is_open = self.read().await?;
        let skipped = self.skipping.min(self.bytes.len());
        self.skipping -= skipped;
        self.start = skipped;
        Ok(is_open)
    }

    /// Adds what the speaker has written to what waits.
    async fn read(&mut self) -> io::Result<bool> {
        if self.speaker == Speaker::Anybody {
            self.bytes.reserve(READ_BYTES);
            return Ok(self.socket.read_buf(&mut self.bytes).await? > 0);
        }
        self.room.resize(READ_BYTES, 0);
        let (socket, room) = (self.socket.as_ref(), &mut self.room);
        let read = || read_attributed(socket.as_fd(), room);
        let (count, from) = socket.async_io(Interest::READABLE, read).await?;
        let is_speaker = self.speaker.is(from);
        if let (Speaker::FirstChild, true) = (self.speaker, is_speaker) {
            self.speaker = Speaker::Process(from);
        }
        if is_speaker {
            self.bytes.extend_from_slice(self.room.get(..count).unwrap_or_default());
        } else {
            self.foreign_bytes += count;
        }
        Ok(count > 0 || from != 0)
    }

    /// Whether others have written more than can be overlooked.
    pub(crate) fn is_flooded(&self) -> bool {
        self.foreign_bytes > MAX_FOREIGN_BYTES
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

impl Speaker {
    fn is(self, pid: i32) -> bool {
        match self {
            Speaker::Anybody => true,
            Speaker::Process(speaker) => speaker == pid,
            Speaker::FirstChild => is_first_child(pid),
        }
    }
}

/// Whether a process is the second of its namespace, that is, the first that its init has started.
pub(crate) fn is_first_child(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.is_some_and(|ids| ids.split_whitespace().nth(1).is_some() && ids.trim().ends_with("\t2"))
}

pub(crate) struct Outbox {
    socket: OwnedWriteHalf,
    frames: VecDeque<(Vec<u8>, Vec<OwnedFd>)>,
    written: usize,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn new(socket: OwnedWriteHalf) -> Outbox {
        Outbox { socket, frames: VecDeque::new(), written: 0, bytes: 0 }
    }

    pub(crate) fn push(&mut self, frame: Vec<u8>) {
        self.push_with(frame, Vec::new());
    }

    /// The same, with descriptors beside the frame.
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

    /// Writes some of what waits. Cancel-safe.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        let socket = self.socket.as_ref();
        let write = || self.write_some();
        let count = socket.async_io(Interest::WRITABLE, write).await?;
        self.note_written(count);
        Ok(())
    }

    /// Descriptors go out beside the first byte of their frame.
    fn write_some(&self) -> io::Result<usize> {
        let Some((frame, fds)) = self.frames.front() else { return Ok(0) };
        let rest = frame.get(self.written..).unwrap_or_default();
        let fds: Vec<_> = fds.iter().map(OwnedFd::as_fd).collect();
        let beside = if self.written == 0 { fds.as_slice() } else { &[] };
        write_with(self.socket.as_ref().as_fd(), rest, beside)
    }

    /// Writes what can be written now.
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
