//! The host's side of `shim/python/zygote.py`: a warm Python interpreter that forks guests into
//! workers.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use codexec_sandbox::{
    Broken, Exit, KeeperLink, ZygoteLink, process_id, receive_packet, send_packet,
};
use serde::Deserialize;
use tokio::io::Interest;
use tokio::net::UnixDatagram;
use tokio::time::timeout;

use crate::ExecError;
use crate::interpreter::PythonZygote;
use crate::slot::{Purpose, timed_out};

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
pub(crate) struct Born {
    /// Opened by the guest's parent, so it cannot refer to a later process with the same id.
    pub(crate) pidfd: OwnedFd,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Ready,
    Hello,
    Spawned,
    Broken(Broken),
    Ended(Ended),
}

#[derive(Debug, Deserialize)]
struct Ended {
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
        match timeout(WARM_UP, hear(&socket)).await.map_err(|_| timed_out())?? {
            Said::Ready => Ok(WarmZygote(socket)),
            Said::Broken(broken) => Err(ExecError::Sandbox(broken)),
            Said::Hello | Said::Spawned | Said::Ended(_) => Err(babble().into()),
        }
    }

    pub(crate) async fn nursery(&self) -> io::Result<Nursery> {
        let (ours, theirs) = codexec_sandbox::packet_pair()?;
        send_packet(self.0.as_fd(), &"nursery", &[theirs.as_fd()])?;
        let ours = std::os::unix::net::UnixDatagram::from(ours);
        ours.set_nonblocking(true)?;
        let socket = UnixDatagram::from_std(ours)?;
        match timeout(STEP, hear_all(&socket)).await.map_err(|_| timed_out())?? {
            (Said::Hello, beside) => {
                let pid = beside.first().and_then(|pidfd| process_id(pidfd.as_fd()));
                Ok(Nursery { socket, pid: pid.ok_or_else(babble)? })
            }
            (Said::Ready | Said::Spawned | Said::Broken(_) | Said::Ended(_), _) => Err(babble()),
        }
    }
}

impl Nursery {
    /// Forks a guest with these descriptors as its socket and output, into the namespaces and the
    /// seccomp rules of the worker.
    pub(crate) async fn fork(
        &self,
        purpose: Purpose,
        own: [BorrowedFd<'_>; 3],
        worker: &[OwnedFd],
    ) -> io::Result<Result<Born, Broken>> {
        let mut fds = own.to_vec();
        fds.extend(worker.iter().map(OwnedFd::as_fd));
        let asked = match purpose {
            Purpose::Execution => "fork",
            Purpose::Session => "fork_session",
        };
        send_packet(self.socket.as_fd(), &asked, &fds)?;
        let heard = timeout(STEP, hear_all(&self.socket)).await;
        match heard.map_err(|_| timed_out())?? {
            (Said::Spawned, beside) => {
                let pidfd = beside.into_iter().next().ok_or_else(babble)?;
                Ok(Ok(Born { pidfd }))
            }
            (Said::Broken(broken), _) => Ok(Err(broken)),
            (Said::Ready | Said::Hello | Said::Ended(_), _) => Err(babble()),
        }
    }

    /// Waits until the guest's first process has exited. Returns its wait status and usage.
    /// Cancel-safe.
    pub(crate) async fn ended(&self) -> io::Result<(i32, Exit)> {
        match hear(&self.socket).await? {
            Said::Ended(Ended { status, cpu_us, peak_bytes }) => {
                Ok((status, Exit { code: None, signal: None, cpu_us, peak_bytes }))
            }
            Said::Ready | Said::Hello | Said::Spawned | Said::Broken(_) => Err(babble()),
        }
    }
}

impl Born {
    /// Returns the process id on the host, unless the guest has exited.
    pub(crate) fn pid(&self) -> Option<i32> {
        process_id(self.pidfd.as_fd())
    }
}

async fn hear(socket: &UnixDatagram) -> io::Result<Said> {
    hear_all(socket).await.map(|(said, _)| said)
}

async fn hear_all(socket: &UnixDatagram) -> io::Result<(Said, Vec<OwnedFd>)> {
    let receive = || receive_packet(socket.as_fd());
    let heard = socket.async_io(Interest::READABLE, receive).await?;
    heard.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn socket(link: KeeperLink) -> io::Result<UnixDatagram> {
    UnixDatagram::from_std(link.into_socket())
}

fn babble() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
