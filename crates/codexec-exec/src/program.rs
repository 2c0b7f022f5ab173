//! Workers for programs: how one is made, and what the host holds of it.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{Exit, First, FromInit, MemoryGauge, Program, ToKeeper};
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::net::{UnixDatagram, UnixStream};
use tokio::time::timeout;

use crate::ExecError;
use crate::memory::Meter;
use crate::nursery::Nursery;
use crate::output::Output;
use crate::slot::{Furnishing, Handles, Keeper, Purpose, STEP, Worker, babble, timed_out};

/// How long an interpreter may take to start.
const READY: Duration = Duration::from_secs(30);

/// How the workers of a slot are made.
pub(crate) struct Programs {
    first: First,
}

/// What the host holds of a worker for programs, beside the guest's socket.
pub(crate) struct Home {
    pub(crate) init: Init,
    pub(crate) out: Output,
    pub(crate) err: Output,
    /// The directory that the guest works in. It outlives the worker.
    pub(crate) workspace: OwnedFd,
    /// The guest's first process, where it is to be interrupted by itself and not by init.
    guest: Option<OwnedFd>,
    /// Where a guest that fetches asks us to.
    pub(crate) listener: Option<OwnedFd>,
    /// What a process that entered from outside has used.
    pub(crate) used: Option<Exit>,
    pub(crate) meter: Arc<Meter>,
}

/// The way to a worker's first process.
pub(crate) struct Init(UnixDatagram);

impl Programs {
    pub(crate) fn new(first: First) -> Programs {
        Programs { first }
    }

    pub(crate) async fn spawn(
        &self,
        keeper: &Keeper,
        nursery: Option<&Nursery>,
        gauge: Option<MemoryGauge>,
        furnishing: Furnishing,
    ) -> Result<Worker, ExecError> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let (out_sender, out) = pipe::pipe()?;
        let (err_sender, err) = pipe::pipe()?;
        // The guest's own ends block as anybody's standard output does.
        let theirs: [OwnedFd; 3] =
            [theirs.into(), out_sender.into_blocking_fd()?, err_sender.into_blocking_fd()?];
        let own = [theirs[0].as_fd(), theirs[1].as_fd(), theirs[2].as_fd()];
        let Furnishing { purpose, mounts } = furnishing;
        let (targets, mounts): (Vec<PathBuf>, Vec<OwnedFd>) = mounts.into_iter().unzip();
        let mut fds: Vec<BorrowedFd<'_>> = own.to_vec();
        fds.extend(mounts.iter().map(OwnedFd::as_fd));
        let is_session = purpose == Purpose::Session;
        let program = Program { first: self.first.clone(), mounts: targets, is_session };
        let asked = ToKeeper::Program(program);
        let (init_pid, handles) = keeper.ask_for_worker(&asked, &fds).await?;
        let init = Init(UnixDatagram::from_std(handles.packets()?)?);
        let handles = Handles::new(handles);
        let mut shown = init.ready().await?.into_iter();
        let workspace = shown.next().ok_or_else(babble)?;
        let disk = shown.next().ok_or_else(babble)?;
        let mut roots = vec![init_pid];
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let (out, err) = (Output::new(out)?, Output::new(err)?);
        let is_fetching = matches!(self.first, First::Fetches(_));
        let listener = if is_fetching { shown.next() } else { None };
        let mut guest = None;
        if let Some(nursery) = nursery {
            let entrance: Vec<OwnedFd> = shown.collect();
            let born = nursery.fork(purpose, own, &entrance).await?.map_err(ExecError::Sandbox)?;
            roots.push(born.pid);
            guest = born.pidfd;
        }
        let meter = Arc::new(Meter::new(gauge, roots.clone(), vec![disk]));
        let home = Home { init, out, err, workspace, guest, listener, used: None, meter };
        let mut worker = Worker { socket, handles, home: Some(home), roots };
        // Nobody but the guest holds its ends now, so its end is seen.
        drop(theirs);
        if self.says_when_ready() {
            timeout(READY, worker.walls()).await.map_err(|_| timed_out())??;
        }
        Ok(worker)
    }

    /// A warm interpreter and Node say when they wait for code; what they hold by then is not the
    /// guest's. Other programs start with the code.
    fn says_when_ready(&self) -> bool {
        matches!(self.first, First::Enters | First::Started(_))
    }
}

impl Home {
    /// Tells the guest to stop what it does. It may not listen.
    pub(crate) fn interrupt(&self, handles: &Handles) {
        match &self.guest {
            Some(guest) => codexec_sandbox::interrupt(guest),
            None => handles.interrupt(),
        }
    }
}

impl Init {
    /// Waits until the guest's first process has ended: its wait status. Cancel-safe.
    pub(crate) async fn ended(&self) -> io::Result<i32> {
        match self.hears().await?.0 {
            FromInit::Ended { status } => Ok(status),
            FromInit::Ready | FromInit::Broken(_) => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    async fn ready(&self) -> Result<Vec<OwnedFd>, ExecError> {
        match timeout(STEP, self.hears()).await.map_err(|_| timed_out())?? {
            (FromInit::Ready, fds) => Ok(fds),
            (FromInit::Broken(broken), _) => Err(ExecError::Sandbox(broken)),
            (FromInit::Ended { .. }, _) => Err(babble()),
        }
    }

    async fn hears(&self) -> io::Result<(FromInit, Vec<OwnedFd>)> {
        let heard = self.0.async_io(Interest::READABLE, || FromInit::receive(&self.0)).await?;
        heard.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
