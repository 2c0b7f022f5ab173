//! What host, zygote and keepers say to each other: one JSON message a packet, with file
//! descriptors beside it. Guests never hold an end of these sockets.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Broken, Launch, Missing, sys};

/// To the zygote: fork a keeper that listens on the socket beside this.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NewKeeper;

#[derive(Debug, Serialize, Deserialize)]
pub enum ToKeeper {
    /// Put yourself behind the walls that all your workers share.
    Build(Launch),
    /// Fork a worker.
    Spawn,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum FromKeeper {
    /// I am here, with this process id; put me into my cgroups.
    Hello {
        pid: i32,
    },
    Built {
        missing: Vec<Missing>,
    },
    Broken(Broken),
    /// The worker's socket and its pidfd are beside this.
    Spawned {
        pid: i32,
    },
    /// The worker and everything it started are dead and reaped.
    Exited(Exit),
}

/// How a worker ended, as its parent saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub cpu_us: u64,
    pub peak_bytes: u64,
}

const MAX_PACKET_BYTES: usize = 16 << 10;
const MAX_FDS: usize = 2;

/// Two ends of a packet socket, neither inherited by a program that is started.
pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?)
}

pub(crate) fn send(
    socket: BorrowedFd<'_>,
    message: &impl Serialize,
    fds: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MAX_PACKET_BYTES {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let raw: Vec<RawFd> = fds.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let control: &[ControlMessage<'_>] = if raw.is_empty() { &[] } else { &rights };
    let iov = [IoSlice::new(&bytes)];
    loop {
        match sendmsg::<()>(socket.as_raw_fd(), &iov, control, MsgFlags::MSG_NOSIGNAL, None) {
            Ok(_) => return Ok(()),
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The next message, or `None` when the other side is gone.
pub(crate) fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; MAX_PACKET_BYTES];
    let mut control = cmsg_space!([RawFd; MAX_FDS]);
    let (length, fds) = loop {
        let mut iov = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(socket.as_raw_fd(), &mut iov, Some(&mut control), flags) {
            Ok(message) => {
                let mut fds = Vec::new();
                for part in message.cmsgs()? {
                    if let ControlMessageOwned::ScmRights(raw) = part {
                        fds.extend(raw.into_iter().map(sys::own));
                    }
                }
                break (message.bytes, fds);
            }
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    if length == 0 {
        return Ok(None);
    }
    let message = serde_json::from_slice(bytes.get(..length).unwrap_or_default())?;
    Ok(Some((message, fds)))
}

impl ToKeeper {
    pub fn send(&self, socket: impl AsFd) -> io::Result<()> {
        send(socket.as_fd(), self, &[])
    }
}

impl FromKeeper {
    pub(crate) fn send(&self, socket: impl AsFd, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(socket.as_fd(), self, fds)
    }

    pub fn receive(socket: impl AsFd) -> io::Result<Option<(FromKeeper, Vec<OwnedFd>)>> {
        receive(socket.as_fd())
    }
}
