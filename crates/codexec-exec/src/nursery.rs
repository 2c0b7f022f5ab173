//! The host's side of `shim/python/zygote.py`: a warm Python interpreter that forks guests into
//! workers.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use codexec_sandbox::{
    KeeperLink, LayerError, WorkerExit, ZygoteLink, process_id, receive_packet, send_packet,
};
use serde::Deserialize;
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::time::timeout;

use crate::ExecError;
use crate::interpreter::PythonZygote;
use crate::slot::{WorkerPurpose, timeout_error};

/// Importing the preloaded modules may take long the first time.
const WARM_UP: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_secs(10);

/// The warm interpreter.
pub(crate) struct WarmZygote(UnixDatagram);

/// A fork of the warm interpreter that belongs to one slot and forks its guests.
pub(crate) struct Nursery {
    socket: UnixDatagram,
    /// The process id on the host.
    pub(crate) pid: i32,
}

/// A guest that a nursery has forked.
pub(crate) struct ForkedGuest {
    /// Opened by the guest's parent, so it cannot refer to a later process with the same id.
    pub(crate) pidfd: OwnedFd,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FromNursery {
    Ready,
    Hello,
    Spawned,
    Broken(LayerError),
    Ended(GuestExit),
}

#[derive(Debug, Deserialize)]
struct GuestExit {
    status: i32,
    cpu_us: u64,
    peak_bytes: u64,
}

impl WarmZygote {
    pub(crate) async fn start(
        link: &ZygoteLink,
        python: &PythonZygote,
    ) -> Result<WarmZygote, ExecError> {
        let socket = socket(link.start_program(python.command.clone())?)?;
        // Fails if the program could not be confined; its report is then read below.
        let _ = send_packet(socket.as_fd(), &python.message, &[]);
        match timeout(WARM_UP, receive_message(&socket)).await.map_err(|_| timeout_error())?? {
            FromNursery::Ready => Ok(WarmZygote(socket)),
            FromNursery::Broken(broken) => Err(ExecError::Sandbox(broken)),
            FromNursery::Hello | FromNursery::Spawned | FromNursery::Ended(_) => {
                Err(protocol_error().into())
            }
        }
    }

    pub(crate) async fn fork_nursery(&self) -> io::Result<Nursery> {
        let (ours, theirs) = codexec_sandbox::packet_pair()?;
        send_packet(self.0.as_fd(), &"nursery", &[theirs.as_fd()])?;
        let ours = std::os::unix::net::UnixDatagram::from(ours);
        ours.set_nonblocking(true)?;
        let socket = UnixDatagram::from_std(ours)?;
        match timeout(STEP, receive_with_fds(&socket)).await.map_err(|_| timeout_error())?? {
            (FromNursery::Hello, fds) => {
                let pid = fds.first().and_then(|pidfd| process_id(pidfd.as_fd()));
                Ok(Nursery { socket, pid: pid.ok_or_else(protocol_error)? })
            }
            (
                FromNursery::Ready
                | FromNursery::Spawned
                | FromNursery::Broken(_)
                | FromNursery::Ended(_),
                _,
            ) => Err(protocol_error()),
        }
    }
}

impl Nursery {
    /// Forks a guest with these descriptors as its socket and standard streams, into the namespaces and the
    /// seccomp rules of the worker.
    pub(crate) async fn fork(
        &self,
        purpose: WorkerPurpose,
        own: [BorrowedFd<'_>; 4],
        worker: &[OwnedFd],
    ) -> io::Result<Result<ForkedGuest, LayerError>> {
        let mut fds = own.to_vec();
        fds.extend(worker.iter().map(OwnedFd::as_fd));
        let request = match purpose {
            WorkerPurpose::Execution => "fork",
            WorkerPurpose::Session => "fork_session",
        };
        send_packet(self.socket.as_fd(), &request, &fds)?;
        let received = timeout(STEP, receive_with_fds(&self.socket)).await;
        match received.map_err(|_| timeout_error())?? {
            (FromNursery::Spawned, fds) => {
                let pidfd = fds.into_iter().next().ok_or_else(protocol_error)?;
                Ok(Ok(ForkedGuest { pidfd }))
            }
            (FromNursery::Broken(broken), _) => Ok(Err(broken)),
            (FromNursery::Ready | FromNursery::Hello | FromNursery::Ended(_), _) => {
                Err(protocol_error())
            }
        }
    }

    /// Waits until the guest's first process has exited. Returns its wait status and usage.
    /// Cancel-safe.
    pub(crate) async fn wait_for_exit(&self) -> io::Result<(i32, WorkerExit)> {
        match receive_message(&self.socket).await? {
            FromNursery::Ended(GuestExit { status, cpu_us, peak_bytes }) => {
                Ok((status, WorkerExit { code: None, signal: None, cpu_us, peak_bytes }))
            }
            FromNursery::Ready
            | FromNursery::Hello
            | FromNursery::Spawned
            | FromNursery::Broken(_) => Err(protocol_error()),
        }
    }
}

impl ForkedGuest {
    /// Returns the process id on the host, unless the guest has exited.
    pub(crate) fn pid(&self) -> Option<i32> {
        process_id(self.pidfd.as_fd())
    }
}

async fn receive_message(socket: &UnixDatagram) -> io::Result<FromNursery> {
    receive_with_fds(socket).await.map(|(message, _)| message)
}

async fn receive_with_fds(socket: &UnixDatagram) -> io::Result<(FromNursery, Vec<OwnedFd>)> {
    let receive = || receive_packet(socket.as_fd());
    let received = socket.async_io(Interest::READABLE, receive).await?;
    received.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn socket(link: KeeperLink) -> io::Result<UnixDatagram> {
    UnixDatagram::from_std(link.into_socket())
}

fn protocol_error() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
