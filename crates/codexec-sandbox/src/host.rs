//! The host's side: starting the zygote, asking it for keepers, and reading what they say.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::control::{self, NewKeeper};
use crate::worker::CONFINED;
use crate::{Broken, Layer, sys};

/// The host's hold on a zygote. Dropping it ends the zygote; its keepers end when their own
/// links are dropped.
pub struct ZygoteLink {
    control: OwnedFd,
    process: Child,
}

/// The host's hold on a keeper: a packet socket for [`crate::ToKeeper`] and
/// [`crate::FromKeeper`], non-blocking. Dropping it kills the keeper's worker and ends the keeper.
pub struct KeeperLink(UnixDatagram);

/// What a keeper sends beside [`crate::FromKeeper::Spawned`].
pub struct WorkerHandles {
    pub socket: UnixStream,
    pidfd: OwnedFd,
}

impl ZygoteLink {
    /// Starts `program role` with nothing of our environment and nothing of our descriptors but
    /// its end of the control socket, as its standard input.
    #[expect(clippy::disallowed_methods, reason = "the one place that starts a guest's process")]
    pub fn start(program: &Path, role: &str) -> io::Result<ZygoteLink> {
        let (control, theirs) = control::pair()?;
        let process = Command::new(program)
            .arg(role)
            .env_clear()
            // A guest's local time is not the host's.
            .env("TZ", "UTC")
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .spawn()?;
        Ok(ZygoteLink { control, process })
    }

    pub fn keeper(&self) -> io::Result<KeeperLink> {
        let (ours, theirs) = control::pair()?;
        control::send(self.control.as_fd(), &NewKeeper, &[theirs.as_fd()])?;
        let ours = UnixDatagram::from(ours);
        ours.set_nonblocking(true)?;
        Ok(KeeperLink(ours))
    }
}

impl Drop for ZygoteLink {
    fn drop(&mut self) {
        // It ends by itself when `control` closes; this also reaps it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl KeeperLink {
    pub fn into_socket(self) -> UnixDatagram {
        self.0
    }
}

impl AsFd for KeeperLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl WorkerHandles {
    /// From the descriptors beside a [`crate::FromKeeper::Spawned`].
    pub fn new(fds: Vec<OwnedFd>) -> io::Result<WorkerHandles> {
        let [socket, pidfd] = <[OwnedFd; 2]>::try_from(fds)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(WorkerHandles { socket: UnixStream::from(socket), pidfd })
    }

    /// Kills the worker, and with it everything in its process namespace.
    pub fn kill(&self) {
        // The only failure is that it is dead already.
        let _ = sys::kill(self.pidfd.as_fd());
    }
}

/// Reads a worker's first words: whether all its walls stand. `None` while they are not whole.
pub fn confined(said: &[u8]) -> Option<Result<(), Broken>> {
    match said {
        [] => None,
        [CONFINED, ..] => Some(Ok(())),
        _ => {
            let line = said.strip_suffix(b"\n")?;
            let garbled =
                || Broken::new(Layer::Seccomp, "a worker said nothing sensible", libc::EPROTO);
            Some(Err(serde_json::from_slice(line).unwrap_or_else(|_| garbled())))
        }
    }
}
