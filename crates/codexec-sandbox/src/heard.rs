//! Sockets that tell who speaks. A descriptor may be passed on, and a pipe be opened again through
//! `/proc`; the kernel's word on which process has written something cannot be passed on.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use nix::cmsg_space;
use nix::sys::socket::sockopt::PassCred;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType,
    UnixCredentials, recvmsg, sendmsg, setsockopt, socketpair,
};

/// Two ends of a socket: ours, which tells who has written what it reads, and theirs.
pub(crate) fn attributed_pair(kind: SockType) -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(AddressFamily::Unix, kind, None, SockFlag::SOCK_CLOEXEC)?;
    tell_speakers(&ours)?;
    Ok((ours, theirs))
}

/// Has a socket tell, from now on, which process has written what is read from it. Before anybody
/// has written anything.
pub fn tell_speakers(socket: &impl AsFd) -> io::Result<()> {
    setsockopt(socket, PassCred, &true)?;
    Ok(())
}

/// Reads what one process has written, without waiting: how many bytes, and the id of that process
/// as this one sees it; 0 for one that cannot be seen from here. No bytes mean that the other side
/// is gone.
pub fn read_attributed(socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<(usize, i32)> {
    let mut control = cmsg_space!(UnixCredentials);
    let mut iov = [IoSliceMut::new(room)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut iov, Some(&mut control), flags)?;
    let mut speaker = 0;
    // Descriptors that somebody sent do not fit beside the credentials, and are closed.
    if let Ok(parts) = message.cmsgs() {
        for part in parts {
            if let ControlMessageOwned::ScmCredentials(from) = part {
                speaker = from.pid();
            }
        }
    }
    Ok((message.bytes, speaker))
}

/// Writes some of these bytes, without waiting, with descriptors beside the first: how many.
pub fn write_with(
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
