//! The worker's end of the socket. It uses `read`, `sendto` and `poll` and nothing else, for the
//! sandbox knows next to no other call on it. A call to the system is what a tool call costs
//! most, so it polls only when there is nothing to do but wait.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use codexec_types::{
    Answer, CallError, Cell, FRAME_HEADER_BYTES, FromGuest, Job, Json, MAX_FRAME_BYTES, ToGuest,
    frame_length,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, send};

const READ_BYTES: usize = 64 << 10;

/// Frames out, answers in. While it waits to write it reads, so that two full buffers cannot
/// make host and guest wait for each other.
pub(crate) struct Wire {
    socket: File,
    unread: Vec<u8>,
    /// What `read` reads into; kept, for clearing it anew each time would cost more than reading.
    buffer: Vec<u8>,
    answers: HashMap<u32, Result<Json, CallError>>,
    /// The ids in `answers`, in the order of their arrival.
    arrived: VecDeque<u32>,
    next_id: u32,
    /// The next code of a session.
    cell: Option<Cell>,
    /// Whether the host wants the cell that runs to stop.
    is_interrupted: bool,
}

/// The host is gone, or talks nonsense: there is nobody left to run for.
#[derive(Debug)]
pub(crate) struct Gone;

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

    /// The first frame: what to run.
    pub(crate) fn receive_job(&mut self) -> Result<Job, Gone> {
        loop {
            match self.take_frame()? {
                Some(ToGuest::Start(job)) => return Ok(job),
                Some(ToGuest::Answer(_) | ToGuest::Cell(_) | ToGuest::Interrupt) => {
                    return Err(Gone);
                }
                None => self.read()?,
            }
        }
    }

    /// The next code of a session; blocks until it is there.
    pub(crate) fn receive_cell(&mut self) -> Result<Cell, Gone> {
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

    /// The same, after a look at what has come. Does not block.
    pub(crate) fn look_for_interrupt(&mut self) -> Result<bool, Gone> {
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

    pub(crate) fn send(&mut self, frame: &FromGuest) -> Result<(), Gone> {
        let bytes = frame.encode().map_err(|_| Gone)?;
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

    /// As much as fits at once, perhaps nothing: never blocks, also on a blocking socket.
    fn write(&self, bytes: &[u8]) -> Result<usize, Gone> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        retry(|| Ok(send(self.socket.as_raw_fd(), bytes, flags)?))
    }

    /// Blocks until the answer with this id is there; the others wait their turn. `None` when the
    /// cell that waits is to stop.
    pub(crate) fn wait_for(&mut self, id: u32) -> Result<Option<Result<Json, CallError>>, Gone> {
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

    /// The next answer; blocks at most until `deadline`, for ever without one, and not when the
    /// cell that runs is to stop.
    pub(crate) fn next_answer(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<Answer>, Gone> {
        loop {
            self.sort_frames()?;
            if let Some(id) = self.arrived.pop_front()
                && let Some(result) = self.answers.remove(&id)
            {
                return Ok(Some(Answer { id, result }));
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

    fn sort_frames(&mut self) -> Result<(), Gone> {
        while let Some(frame) = self.take_frame()? {
            match frame {
                ToGuest::Start(_) => return Err(Gone),
                // One at a time.
                ToGuest::Cell(_) if self.cell.is_some() => return Err(Gone),
                ToGuest::Cell(cell) => {
                    // What came before it meant the cell before it.
                    self.is_interrupted = false;
                    self.cell = Some(cell);
                }
                ToGuest::Interrupt => self.is_interrupted = true,
                ToGuest::Answer(Answer { id, result }) => {
                    self.answers.insert(id, result);
                    self.arrived.push_back(id);
                }
            }
        }
        Ok(())
    }

    fn take_frame(&mut self) -> Result<Option<ToGuest>, Gone> {
        let Some((header, rest)) = self.unread.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = frame_length(*header).map_err(|_| Gone)?;
        let Some(body) = rest.get(..length) else {
            let missing = length - rest.len();
            self.unread.reserve(missing.min(MAX_FRAME_BYTES));
            return Ok(None);
        };
        let frame = ToGuest::decode(body).map_err(|_| Gone)?;
        self.unread.drain(..FRAME_HEADER_BYTES + length);
        Ok(Some(frame))
    }

    /// Blocks until there may be more to take.
    fn read(&mut self) -> Result<(), Gone> {
        let count = retry(|| match self.socket.read(&mut self.buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            other => other,
        })?;
        if count == 0 {
            // The socket itself does not block.
            self.poll(PollFlags::POLLIN, None)?;
        }
        self.unread.extend_from_slice(self.buffer.get(..count).unwrap_or_default());
        Ok(())
    }

    /// What of `wanted` can be done now; nothing when the time is up, or a signal came between.
    fn poll(&self, wanted: PollFlags, left: Option<Duration>) -> Result<PollFlags, Gone> {
        let timeout = match left {
            // A timer may fire late, never early: rounded up.
            Some(left) => {
                PollTimeout::try_from(left.as_micros().div_ceil(1_000)).unwrap_or(PollTimeout::MAX)
            }
            None => PollTimeout::NONE,
        };
        let mut fds = [PollFd::new(self.socket.as_fd(), wanted)];
        match poll(&mut fds, timeout) {
            Ok(0) | Err(nix::Error::EINTR) => Ok(PollFlags::empty()),
            // A hang-up shows itself in the read that follows.
            Ok(_) => Ok(fds.first().and_then(PollFd::revents).unwrap_or(PollFlags::POLLIN)),
            Err(_) => Err(Gone),
        }
    }
}

/// Zero bytes when the call would have blocked.
fn retry(mut call: impl FnMut() -> io::Result<usize>) -> Result<usize, Gone> {
    loop {
        match call() {
            Ok(count) => return Ok(count),
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) if err.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(_) => return Err(Gone),
        }
    }
}

#[cfg(test)]
mod tests;
