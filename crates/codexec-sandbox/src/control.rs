//! What host, zygote and keepers say to each other: one JSON message a packet, with file
//! descriptors beside it. Guests never hold an end of these sockets.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::path::PathBuf;

use nix::cmsg_space;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{Broken, Launch, Missing, sys};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToZygote {
    /// Fork a keeper that listens on the socket beside this.
    Keeper,
    /// Live in this plan's room from now on, with all keepers to come.
    Enter(Launch),
    /// Start this program in the room, with the socket beside this as its standard input.
    Start(Command),
}

/// What a zygote says to [`ToZygote::Enter`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromZygote {
    Entered { missing: Vec<Missing> },
    Broken(Broken),
}

/// A program with all that it gets from us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ToKeeper {
    /// Put yourself behind the walls that all your workers share.
    Build(Launch),
    /// Fork a worker that runs our own guest.
    Spawn,
    /// Fork a worker for programs. Beside this: the guest's socket, its standard output and
    /// error, and a mount for each of `mounts`.
    Program(Program),
    /// Show the living worker a directory of the user's. Beside this: the worker's user and mount
    /// namespaces and the directory's mount; then the place for the real path at first, and the
    /// stage for a renewal.
    Overlay(OverlayRequest),
}

/// A directory of the user's as a guest sees it: what the guest writes goes to a layer above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// Where the guest sees it, beside `/box/work`, if that can be.
    pub real_path: PathBuf,
    pub is_writable: bool,
    /// What all that the guest writes there may take.
    pub max_bytes: u64,
    pub max_files: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayRequest {
    pub overlay: Overlay,
    /// `None` for the first time in a worker's life.
    pub renewal: Option<OverlayRenewal>,
}

/// Replaces a worker's overlay by one with another upper layer, `upper-<generation>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayRenewal {
    pub generation: u32,
    /// As the keeper said in [`FromKeeper::Mounted`].
    pub is_at_real_path: bool,
}

/// What lives in a worker for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    pub first: First,
    /// Where the mounts go.
    pub mounts: Vec<PathBuf>,
    /// Whether it is kept for a session: its time on the processor is then bounded by the host,
    /// for each cell, and not by the kernel for its whole life.
    pub is_session: bool,
}

/// The first process of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum First {
    /// Started at once, with the guest's socket as its descriptor 3.
    Started(Command),
    /// The same, in a network of its own where nothing is but a listener of the host's, at
    /// [`PROXY_PORT`] of the loopback address: what it is let to, the host decides. The listener
    /// is beside [`FromInit::Ready`], behind the workspace.
    Fetches(Command),
    /// Started when the code has come over the guest's socket: the code is a file, which is the
    /// last argument, and the input is on standard input.
    Scripted(Command),
    /// A process of somebody else's, which enters by the descriptors beside
    /// [`FromInit::Ready`].
    Enters,
}

/// Where a program that fetches finds the host's proxy. Its network is its own, so every port is
/// free there.
pub const PROXY_PORT: u16 = 3128;

/// The namespaces of a worker, in the order in which their descriptors stand beside
/// [`FromInit::Ready`] and in which they are to be entered.
pub const NAMESPACES: [&str; 7] = ["net", "user", "mnt", "pid", "ipc", "uts", "cgroup"];

/// What the first process of a worker for programs says to the host.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromInit {
    /// All walls stand. Beside this: the workspace; then, for a guest that fetches, its listener.
    /// For all others the user and mount namespaces and the place for a directory's real path;
    /// and for one that enters, all namespaces and, if it is in force, the Landlock ruleset.
    Ready,
    Broken(Broken),
    /// The guest's first process has ended; as `wait` tells it.
    Ended {
        status: i32,
    },
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
    /// The worker sees the user's directory. Beside this, for the first time: the stage, which is
    /// the mount namespace to make renewals in, and the directory that holds the upper layers, if
    /// there are any.
    Mounted {
        is_at_real_path: bool,
    },
    NotMounted(Broken),
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

/// A launch plan holds the files of its room.
const MAX_PACKET_BYTES: usize = 160 << 10;
const MAX_FDS: usize = 64;

/// Two ends of a packet socket, neither inherited by a program that is started.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?)
}

/// Writes one packet, with descriptors beside it.
pub fn send(
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

/// The next message and what came beside it, or `None` when the other side is gone.
pub fn receive<T: DeserializeOwned>(
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
    pub fn send(&self, socket: impl AsFd, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(socket.as_fd(), self, fds)
    }
}

impl FromInit {
    pub fn receive(socket: impl AsFd) -> io::Result<Option<(FromInit, Vec<OwnedFd>)>> {
        receive(socket.as_fd())
    }
}

impl FromKeeper {
    pub fn send(&self, socket: impl AsFd, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        send(socket.as_fd(), self, fds)
    }

    pub fn receive(socket: impl AsFd) -> io::Result<Option<(FromKeeper, Vec<OwnedFd>)>> {
        receive(socket.as_fd())
    }
}
