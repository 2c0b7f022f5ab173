//! Frames on one socket, without ever waiting for it.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use codexec_types::{FRAME_HEADER_BYTES, FrameError, MAX_FRAME_BYTES, frame_length};
use nix::sys::socket::{MsgFlags, recv, send};

const READ_BYTES: usize = 64 << 10;

pub(super) struct Link {
    socket: OwnedFd,
    unread: Vec<u8>,
    /// How much of `unread` is taken.
    taken: usize,
    unsent: Vec<u8>,
    /// How much of `unsent` is sent.
    sent: usize,
}

impl Link {
    pub(super) fn new(socket: OwnedFd) -> Link {
        Link { socket, unread: Vec::new(), taken: 0, unsent: Vec::new(), sent: 0 }
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

    /// Reads some, of what may be `room` bytes at most. `false` when the other side is gone, or
    /// has no room.
    pub(super) fn fill(&mut self, room: usize) -> io::Result<bool> {
        self.unread.drain(..self.taken);
        self.taken = 0;
        // A whole frame is taken before more is read, unless nobody takes frames now.
        if self.unread.len() > MAX_FRAME_BYTES + READ_BYTES || room < READ_BYTES {
            return Ok(false);
        }
        let mut buffer = [0; READ_BYTES];
        // Whoever has the other end may have this one too, and its flags: only the call's own
        // flag says that it does not wait.
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

    /// A frame's body that has arrived whole, if there is one.
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

    /// Sends as much as goes out at once.
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
        // What was large is given back.
        self.unsent = Vec::new();
        self.sent = 0;
        Ok(())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
