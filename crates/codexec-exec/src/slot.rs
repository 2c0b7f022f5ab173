//! One place where a guest can run: a keeper in its cgroup, with a worker waiting behind its
//! walls.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use codexec_sandbox::{
    Cgroups, Exit, FromKeeper, Group, Launch, Posture, ToKeeper, WorkerHandles, ZygoteLink,
    confined,
};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::{UnixDatagram, UnixStream};
use tokio::time::timeout;

use crate::ExecError;

/// Every step of building a slot is bounded by this.
const STEP: Duration = Duration::from_secs(10);

/// What a keeper and a worker of ours need beside the guest's memory.
const OVERHEAD_BYTES: u64 = 64 << 20;
/// The keeper, the worker, and room for a mistake.
const PROCESSES: u32 = 4;

pub(crate) struct Slot {
    keeper: Keeper,
    group: Option<Group>,
    posture: Posture,
    worker: Worker,
}

/// A worker that waits, or that a guest runs in.
pub(crate) struct Worker {
    pub(crate) socket: UnixStream,
    pub(crate) handles: Handles,
}

/// Kills its worker when dropped.
pub(crate) struct Handles(Option<WorkerHandles>);

/// The parts of a slot while its worker is busy.
pub(crate) struct Busy {
    keeper: Keeper,
    group: Option<Group>,
    oom_kills_before: u64,
    pub(crate) posture: Posture,
}

struct Keeper(UnixDatagram);

impl Slot {
    pub(crate) async fn open(
        zygote: &ZygoteLink,
        launch: &Launch,
        memory_bytes: u64,
        cgroups: Result<&Cgroups, codexec_sandbox::Missing>,
    ) -> Result<Slot, ExecError> {
        let keeper = Keeper(UnixDatagram::from_std(zygote.keeper()?.into_socket())?);
        let FromKeeper::Hello { pid } = keeper.says().await?.0 else { return Err(babble()) };
        let mut posture = Posture::default();
        let group = match cgroups {
            Ok(cgroups) => {
                let cgroups = cgroups.clone();
                let admit = move || {
                    let group = cgroups.group(memory_bytes + OVERHEAD_BYTES, PROCESSES)?;
                    group.admit(pid)?;
                    io::Result::Ok(group)
                };
                Some(tokio::task::spawn_blocking(admit).await.map_err(io::Error::other)??)
            }
            Err(missing) => {
                posture.missing.push(missing);
                None
            }
        };
        ToKeeper::Build(launch.clone()).send(&keeper.0)?;
        match keeper.says().await?.0 {
            FromKeeper::Built { missing } => posture.missing.extend(missing),
            FromKeeper::Broken(broken) => return Err(ExecError::Sandbox(broken)),
            FromKeeper::Hello { .. } | FromKeeper::Spawned { .. } | FromKeeper::Exited(_) => {
                return Err(babble());
            }
        }
        let worker = keeper.spawn().await?;
        Ok(Slot { keeper, group, posture, worker })
    }

    pub(crate) fn posture(&self) -> &Posture {
        &self.posture
    }

    /// Whether the waiting worker is still there.
    pub(crate) fn is_alive(&self) -> bool {
        // A waiting worker says nothing, so anything readable is its end.
        let mut byte = [0];
        matches!(self.worker.socket.try_read(&mut byte), Err(error)
            if error.kind() == io::ErrorKind::WouldBlock)
    }

    pub(crate) fn occupy(self) -> (Busy, Worker) {
        let oom_kills_before = self.group.as_ref().map_or(0, Group::oom_kills);
        let Slot { keeper, group, posture, worker } = self;
        (Busy { keeper, group, oom_kills_before, posture }, worker)
    }
}

impl Busy {
    /// Waits until the worker and all it started are dead. Cancel-safe.
    pub(crate) async fn exited(&mut self) -> io::Result<Exit> {
        match self.keeper.hears().await?.0 {
            FromKeeper::Exited(exit) => Ok(exit),
            FromKeeper::Hello { .. }
            | FromKeeper::Built { .. }
            | FromKeeper::Broken(_)
            | FromKeeper::Spawned { .. } => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Whether the kernel killed the worker because the slot's memory ran out.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.group.as_ref().is_some_and(|group| group.oom_kills() > self.oom_kills_before)
    }

    /// A fresh worker in the same slot. Only after [`Busy::exited`].
    pub(crate) async fn refill(self) -> Result<Slot, ExecError> {
        let Busy { keeper, group, posture, .. } = self;
        let worker = keeper.spawn().await?;
        Ok(Slot { keeper, group, posture, worker })
    }
}

impl Keeper {
    async fn spawn(&self) -> Result<Worker, ExecError> {
        ToKeeper::Spawn.send(&self.0)?;
        let handles = match self.says().await? {
            (FromKeeper::Spawned { .. }, fds) => WorkerHandles::new(fds)?,
            (FromKeeper::Broken(broken), _) => return Err(ExecError::Sandbox(broken)),
            (FromKeeper::Hello { .. } | FromKeeper::Built { .. } | FromKeeper::Exited(_), _) => {
                return Err(babble());
            }
        };
        let socket = handles.socket.try_clone()?;
        socket.set_nonblocking(true)?;
        let mut worker =
            Worker { socket: UnixStream::from_std(socket)?, handles: Handles(Some(handles)) };
        timeout(STEP, worker.walls()).await.map_err(|_| timed_out())??;
        Ok(worker)
    }

    async fn says(&self) -> io::Result<(FromKeeper, Vec<OwnedFd>)> {
        timeout(STEP, self.hears()).await.map_err(|_| timed_out())?
    }

    async fn hears(&self) -> io::Result<(FromKeeper, Vec<OwnedFd>)> {
        let heard = self.0.async_io(Interest::READABLE, || FromKeeper::receive(&self.0)).await?;
        heard.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl Worker {
    /// Everything the worker says, to its end.
    pub(crate) async fn said(mut self, text: &mut Vec<u8>) -> io::Result<()> {
        self.socket.read_to_end(text).await.map(drop)
    }

    /// Byte by byte: what comes behind the first word may be the guest's.
    async fn walls(&mut self) -> Result<(), ExecError> {
        let mut said = Vec::new();
        loop {
            said.push(self.socket.read_u8().await?);
            match confined(&said) {
                Some(Ok(())) => return Ok(()),
                Some(Err(broken)) => return Err(ExecError::Sandbox(broken)),
                None => {}
            }
        }
    }
}

impl Handles {
    pub(crate) fn kill(&self) {
        if let Some(handles) = &self.0 {
            handles.kill();
        }
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        self.kill();
    }
}

fn babble() -> ExecError {
    io::Error::from(io::ErrorKind::InvalidData).into()
}

fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
