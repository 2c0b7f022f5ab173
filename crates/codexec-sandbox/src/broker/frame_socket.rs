//! Non-blocking reads and writes of frames on one socket.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use codexec_types::{FRAME_HEADER_BYTES, FrameError, MAX_FRAME_BYTES, frame_length};
use nix::sys::socket::{MsgFlags, recv, send};

const READ_BYTES: usize = 64 << 10;

pub(super) struct FrameSocket {
    socket: OwnedFd,
    unread: Vec<u8>,
    /// How much of `unread` is taken.
    taken: usize,
    unsent: Vec<u8>,
    /// How much of `unsent` is sent.
    sent: usize,
}

impl FrameSocket {
    pub(super) fn new(socket: OwnedFd) -> FrameSocket {
        FrameSocket { socket, unread: Vec::new(), taken: 0, unsent: Vec::new(), sent: 0 }
    }

    pub(super) fn unread_bytes(&self) -> usize {
        self.unread.len()
    }

    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent.len() - self.sent
    }

    pub(super) fn push(&mut self, frame: &[u8]) {
        self.unsent.extend_from_slice(frame);
    }

    /// Reads once. Returns false if the peer is gone, or if less than one read fits into
    /// `max_bytes`.
    pub(super) fn fill(&mut self, max_bytes: usize) -> io::Result<bool> {
        self.unread.drain(..self.taken);
        self.taken = 0;
        // Complete frames are taken before more is read, unless the host's queue is full.
        if self.unread.len() > MAX_FRAME_BYTES + READ_BYTES || max_bytes < READ_BYTES {
            return Ok(false);
        }
        let mut buffer = [0; READ_BYTES];
        // The peer may hold this end too, and change O_NONBLOCK on it. Only MSG_DONTWAIT is safe.
        match recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.unread.extend_from_slice(buffer.get(..count).unwrap_or_default());
                Ok(true)
            }
            Err(nix::Error::EINTR | nix::Error::EAGAIN) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes the body of the next complete frame, if there is one.
    pub(super) fn take(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let waiting = self.unread.get(self.taken..).unwrap_or_default();
        let Some((header, rest)) = waiting.split_first_chunk::<FRAME_HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = frame_length(*header)?;
        let Some(body) = rest.get(..length) else { return Ok(None) };
        self.taken += FRAME_HEADER_BYTES + length;
        Ok(Some(body))
    }

    /// Sends as much as the socket takes without blocking.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        while self.sent < self.unsent.len() {
            let rest = self.unsent.get(self.sent..).unwrap_or_default();
            match send(self.socket.as_raw_fd(), rest, flags) {
                Ok(count) => self.sent += count,
                Err(nix::Error::EINTR) => {}
                Err(nix::Error::EAGAIN) => {
                    self.unsent.drain(..self.sent);
                    self.sent = 0;
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        // Frees the memory of a large queue.
        self.unsent = Vec::new();
        self.sent = 0;
        Ok(())
    }
}

impl AsFd for FrameSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
