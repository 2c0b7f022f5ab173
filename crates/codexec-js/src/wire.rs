//! The worker's end of the socket. Uses only `read`, `sendto` and `poll`, because seccomp allows
//! hardly anything else. System calls are the main cost of a tool call, so it polls only when there
//! is nothing to do but wait.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use codexec_types::{
    AskAnswer, CallError, Cell, FRAME_HEADER_BYTES, FromGuest, Json, MAX_FRAME_BYTES, ToGuest,
    WorkerJob, frame_length,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, send};

const READ_BYTES: usize = 64 << 10;

/// Sends frames and receives answers. Reads while waiting to write, so that two full buffers cannot
/// block host and guest.
pub(crate) struct Wire {
    socket: File,
    unread: Vec<u8>,
    /// The buffer for `read`. Reused, because clearing a new one costs more than reading.
    buffer: Vec<u8>,
    answers: HashMap<u32, Result<Json, CallError>>,
    /// The ids in `answers`, in the order of arrival.
    arrived: VecDeque<u32>,
    next_id: u32,
    /// The next cell of a session.
    cell: Option<Cell>,
    /// The host has interrupted the current cell.
    is_interrupted: bool,
}

/// The host is gone, or sent an invalid frame: the guest has to end.
#[derive(Debug)]
pub(crate) struct HostGone;

impl Wire {
    pub(crate) fn new(socket: UnixStream) -> Wire {
        Wire {
            socket: File::from(OwnedFd::from(socket)),
            unread: Vec::new(),
            buffer: vec![0; READ_BYTES],
            answers: HashMap::new(),
            arrived: VecDeque::new(),
            next_id: 1,
            cell: None,
            is_interrupted: false,
        }
    }

    /// Receives the first frame: the job.
    pub(crate) fn receive_job(&mut self) -> Result<WorkerJob, HostGone> {
        loop {
            match self.take_frame()? {
                Some(ToGuest::Start(job)) => return Ok(job),
                Some(ToGuest::Answer(_) | ToGuest::Cell(_) | ToGuest::Interrupt) => {
                    return Err(HostGone);
                }
                None => self.read()?,
            }
        }
    }

    /// Receives the next cell of a session. Blocks until it arrives.
    pub(crate) fn receive_cell(&mut self) -> Result<Cell, HostGone> {
        loop {
            self.sort_frames()?;
            match self.cell.take() {
                Some(cell) => return Ok(cell),
                None => self.read()?,
            }
        }
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Reads what has arrived, without blocking, and returns whether the cell is interrupted.
    pub(crate) fn poll_interrupt(&mut self) -> Result<bool, HostGone> {
        if !self.poll(PollFlags::POLLIN, Some(Duration::ZERO))?.is_empty() {
            self.read()?;
            self.sort_frames()?;
        }
        Ok(self.is_interrupted)
    }

    pub(crate) fn take_id(&mut self) -> u32 {
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        id
    }

    pub(crate) fn send(&mut self, frame: &FromGuest) -> Result<(), HostGone> {
        let bytes = frame.encode().map_err(|_| HostGone)?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let written = self.write(rest)?;
            rest = rest.get(written..).unwrap_or_default();
            if written == 0 {
                let ready = self.poll(PollFlags::POLLIN | PollFlags::POLLOUT, None)?;
                if !ready.is_empty() && !ready.contains(PollFlags::POLLOUT) {
                    self.read()?;
                }
            }
        }
        Ok(())
    }

    /// Writes as much as fits, perhaps nothing. Never blocks, not even on a blocking socket.
    fn write(&self, bytes: &[u8]) -> Result<usize, HostGone> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        retry(|| Ok(send(self.socket.as_raw_fd(), bytes, flags)?))
    }

    /// Blocks until the answer with this id arrives; others are kept. Returns `None` if the cell is
    /// interrupted.
    pub(crate) fn wait_for(
        &mut self,
        id: u32,
    ) -> Result<Option<Result<Json, CallError>>, HostGone> {
        loop {
            self.sort_frames()?;
            if let Some(result) = self.answers.remove(&id) {
                self.arrived.retain(|arrived| *arrived != id);
                return Ok(Some(result));
            }
            if self.is_interrupted {
                return Ok(None);
            }
            self.read()?;
        }
    }

    /// Returns the next answer. Blocks at most until `deadline`, or forever without one; returns
    /// `None` if the cell is interrupted.
    pub(crate) fn next_answer(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<AskAnswer>, HostGone> {
        loop {
            self.sort_frames()?;
            if let Some(id) = self.arrived.pop_front()
                && let Some(result) = self.answers.remove(&id)
            {
                return Ok(Some(AskAnswer { id, result }));
            }
            if self.is_interrupted {
                return Ok(None);
            }
            if let Some(deadline) = deadline {
                let left = deadline.saturating_duration_since(Instant::now());
                if self.poll(PollFlags::POLLIN, Some(left))?.is_empty() {
                    return Ok(None);
                }
            }
            self.read()?;
        }
    }

    fn sort_frames(&mut self) -> Result<(), HostGone> {
        while let Some(frame) = self.take_frame()? {
            match frame {
                ToGuest::Start(_) => return Err(HostGone),
                // One cell at a time.
                ToGuest::Cell(_) if self.cell.is_some() => return Err(HostGone),
                ToGuest::Cell(cell) => {
                    // An interrupt before the cell was meant for the previous one.
                    self.is_interrupted = false;
                    self.cell = Some(cell);
                }
                ToGuest::Interrupt => self.is_interrupted = true,
                ToGuest::Answer(AskAnswer { id, result }) => {
                    self.answers.insert(id, result);
                    self.arrived.push_back(id);
                }
            }
        }
        Ok(())
    }

    fn take_frame(&mut self) -> Result<Option<ToGuest>, HostGone> {
        let Some((header, rest)) = self.unread.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = frame_length(*header).map_err(|_| HostGone)?;
        let Some(body) = rest.get(..length) else {
            let missing = length - rest.len();
            self.unread.reserve(missing.min(MAX_FRAME_BYTES));
            return Ok(None);
        };
        let frame = ToGuest::decode(body).map_err(|_| HostGone)?;
        self.unread.drain(..FRAME_HEADER_BYTES + length);
        Ok(Some(frame))
    }

    /// Reads more bytes. Blocks until some may be available.
    fn read(&mut self) -> Result<(), HostGone> {
        let count = retry(|| match self.socket.read(&mut self.buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            other => other,
        })?;
        if count == 0 {
            // The socket is non-blocking.
            self.poll(PollFlags::POLLIN, None)?;
        }
        self.unread.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
        Ok(())
    }

    /// Waits for events; returns none on a timeout or after a signal.
    fn poll(&self, wanted: PollFlags, left: Option<Duration>) -> Result<PollFlags, HostGone> {
        let timeout = match left {
            // Rounded up: a timer may fire late, never early.
            Some(left) => {
                PollTimeout::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(PollTimeout::MAX)
            }
            None => PollTimeout::NONE,
        };
        let mut fds = [PollFd::new(self.socket.as_fd(), wanted)];
        match poll(&mut fds, timeout) {
            Ok(0) | Err(nix::Error::EINTR) => Ok(PollFlags::empty()),
            // A hang-up is noticed by the read that follows.
            Ok(_) => Ok(fds.first().and_then(PollFd::revents).unwrap_or(PollFlags::POLLIN)),
            Err(_) => Err(HostGone),
        }
    }
}

/// Retries after EINTR. Returns zero if the call would have blocked.
fn retry(mut call: impl FnMut() -> io::Result<usize>) -> Result<usize, HostGone> {
    loop {
        match call() {
            Ok(count) => return Ok(count),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(_) => return Err(HostGone),
        }
    }
}

#[cfg(test)]
mod tests;
