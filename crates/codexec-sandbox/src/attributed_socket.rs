//! Sockets that identify the writer of each message (`SO_PASSCRED`). A guest can pass a descriptor
//! to another process, or reopen a pipe through `/proc`, but cannot forge the kernel's credentials.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use nix::cmsg_space;
use nix::sys::socket::sockopt::PassCred;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    UnixCredentials, recvmsg, sendmsg, setsockopt, socketpair,
};

/// Creates a socket pair: our end, which identifies writers, and the peer's end.
pub(crate) fn attributed_pair(kind: SockType) -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC)?;
    enable_peer_credentials(&ours)?;
    Ok((ours, theirs))
}

/// Makes a socket identify the writer of what is read from it. Call this before anything is
/// written.
pub fn enable_peer_credentials(socket: &impl AsFd) -> io::Result<()> {
    setsockopt(socket, PassCred, &true)?;
    Ok(())
}

/// Reads what one process has written, without blocking. Returns the number of bytes, 0 at the end,
/// and the writer's process id in this PID namespace, 0 if the writer is not visible here.
pub fn read_attributed(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, i32)> {
    let mut control = cmsg_space!(UnixCredentials);
    let mut iov = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut iov, Some(&mut control), flags)?;
    let mut writer = 0;
    // The control buffer has no space for descriptors, so the kernel closes any that were sent.
    if let Ok(parts) = message.cmsgs() {
        for part in parts {
            if let ControlMessageOwned::ScmCredentials(from) = part {
                writer = from.pid();
            }
        }
    }
    Ok((message.bytes, writer))
}

/// Writes some of these bytes without blocking, with descriptors attached to the first byte.
/// Returns how many were written.
pub fn write_with_fds(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let raw: Vec<_> = fds.iter().map(std::os::fd::AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    Ok(sendmsg::<()>(socket.as_raw_fd(), &[IoSlice::new(bytes)], control, flags, None)?)
}

#[cfg(test)]
mod tests;
