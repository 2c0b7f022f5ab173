//! The messages between host, zygote and keepers: one JSON message per packet, with file
//! descriptors attached (`SCM_RIGHTS`). Guests never hold an end of these sockets.

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

use crate::{Launch, LayerError, MissingLayer, sys};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToZygote {
    /// Fork a keeper that listens on the attached socket.
    Keeper,
    /// Enter this plan's rootfs, before any keeper is forked.
    Enter(Launch),
    /// Start this program in the rootfs, with the attached socket as its stdin.
    Start(ProgramCommand),
    /// Attach a mount in a running worker. Attached: the worker's user and mount namespaces, the
    /// mount, and a socket for the [`AttachReply`].
    Attach { target: PathBuf },
}

/// The answer to [`ToZygote::Attach`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum AttachReply {
    Done,
    Failed { errno: i32 },
}

/// The reply to a [`ToZygote::Start`] that failed, on the program's own socket.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartFailure {
    Broken(LayerError),
}

/// The answer to [`ToZygote::Enter`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromZygote {
    Entered { missing: Vec<MissingLayer> },
    Broken(LayerError),
}

/// A program with its arguments and its whole environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCommand {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum ToKeeper {
    /// Apply the layers that all workers of the keeper share.
    Build(Launch),
    /// Fork a worker that runs the engine in our own binary.
    Spawn,
    /// Fork a worker for programs. Attached: the guest's socket, its three standard streams, and a
    /// mount for each of `mounts`.
    Program(ProgramGuest),
    /// Work on the overlay of the running worker. Attached: the worker's user and mount namespaces,
    /// and the descriptors of the [`OverlayTask`].
    Overlay(OverlayTask),
}

/// A directory of the user as a guest sees it. The guest's writes go to a layer above it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// The path at which the guest sees the directory in addition to `/box/work`, if possible.
    pub real_path: PathBuf,
    pub is_writable: bool,
    pub limits: LayerLimits,
}

/// The limits on all that a guest writes in a directory of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerLimits {
    pub max_bytes: u64,
    pub max_files: u64,
}

/// A step in the life of a worker's overlay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OverlayTask {
    /// Prepare a worker's first overlay, and mount it when the [`Overlay`] arrives with the
    /// directory's mount. Attached: the tmpfs for the real path's parents, and the socket over which
    /// they arrive. Nothing is mounted if the socket's other end is closed instead.
    Mount(LayerLimits),
    /// Let the host make folders in a layer that the guest has filled with files, until the next
    /// renewal. Attached: the stage.
    MakeRoom(LayerLimits),
    /// Replace the overlay. Attached: the stage, and the directory's new mount.
    Renew(Overlay, OverlayRenewal),
}

/// A request to replace a worker's overlay by one with the upper layer `upper-<generation>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayRenewal {
    pub generation: u32,
    /// From the keeper's [`FromKeeper::Mounted`].
    pub is_at_real_path: bool,
}

/// The guest of a worker for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramGuest {
    pub first: FirstProcess,
    /// The targets of the mounts.
    pub mounts: Vec<PathBuf>,
    /// True for a session. The host then limits the CPU time of each cell, and no rlimit bounds
    /// the worker's whole life.
    pub is_session: bool,
}

/// The first process of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FirstProcess {
    /// A program that starts at once, with the guest's socket as file descriptor 3.
    Started(ProgramCommand),
    /// The same, in its own network namespace that contains only a listener of the host, at
    /// [`PROXY_PORT`] of the loopback address. The host decides what the program may reach. The
    /// listener is attached to [`FromInit::Ready`], after the workspace.
    Fetches(ProgramCommand),
    /// An interpreter that starts once the code has arrived over the guest's socket. The code is a
    /// file, whose path is the last argument; the input is on stdin.
    Scripted(ProgramCommand),
    /// A process from outside, which enters the worker by the namespaces attached to
    /// [`FromInit::Ready`].
    Enters,
}

/// The port of the host's proxy, for a program that fetches. The program has its own network
/// namespace, so every port is free.
pub const PROXY_PORT: u16 = 3128;

/// The namespaces of a worker, in the order in which they are attached to [`FromInit::Ready`] and
/// in which a process must enter them.
pub const NAMESPACES: [&str; 7] = ["net", "user", "mnt", "pid", "ipc", "uts", "cgroup"];

/// A message from the first process of a worker for programs to the host.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromInit {
    /// All layers are in force. Attached: the workspace; then, for a guest that fetches, its
    /// listener. All others attach the user and mount namespaces and the tmpfs for a real path's
    /// parents; for a process that enters, all namespaces and the Landlock ruleset, if in force.
    Ready,
    Broken(LayerError),
    /// A cell begins. Attached: the read ends of its stdout and stderr.
    Streams,
    /// The guest's first process has ended, with this wait status.
    Ended {
        status: i32,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub enum FromKeeper {
    /// The keeper has started and waits to be moved into its cgroups. Attached: its pidfd, since
    /// its process id differs in another PID namespace.
    Hello,
    Built {
        missing: Vec<MissingLayer>,
    },
    Broken(LayerError),
    /// A worker has started. Attached: its socket and its pidfd.
    Spawned,
    /// The worker sees the user's directory. Attached, the first time: the stage, which is the
    /// mount namespace for renewals, and the directory of the upper layers, if there are any.
    Mounted {
        is_at_real_path: bool,
    },
    NotMounted(LayerError),
    /// The worker and everything it started are dead and reaped.
    Exited(WorkerExit),
}

/// A worker's exit status and resource usage, from `wait4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerExit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub cpu_us: u64,
    pub peak_bytes: u64,
}

/// Large, because a launch plan contains the texts of its rootfs's files.
const MAX_PACKET_BYTES: usize = 160 << 10;
const MAX_FDS: usize = 64;

/// Creates a pair of packet sockets, both close-on-exec.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC;
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?)
}

/// Sends one packet with file descriptors attached.
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

/// Receives the next message and its attached file descriptors, or `None` when the peer is gone.
pub fn receive<T: DeserializeOwned>(
    socket: BorrowedFd<'_>,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let length = next_length(socket)?;
    if length > MAX_PACKET_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length];
    let mut control = cmsg_space!([RawFd; MAX_FDS]);
    let (length, fds) = loop {
        let mut iov = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        match recvmsg::<()>(socket.as_raw_fd(), &mut iov, Some(&mut control), flags) {
            Ok(message) => {
                let mut fds = Vec::new();
                for part in message.cmsgs()? {
                    if let ControlMessageOwned::ScmRights(raw) = part {
                        fds.extend(raw.into_iter().map(sys::take_ownership));
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

/// Returns the length of the next message, which stays in the socket. Most messages are short, and
/// clearing a buffer for the longest takes longer than asking.
fn next_length(socket: BorrowedFd<'_>) -> io::Result<usize> {
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_TRUNC;
    loop {
        match recvmsg::<()>(socket.as_raw_fd(), &mut [], None, flags) {
            Ok(message) => return Ok(message.bytes),
            Err(nix::Error::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
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
