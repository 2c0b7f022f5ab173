//! Workers for programs (Python, Bash, Node): how they are made, and what the host holds of them.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{
    Exit, First, FromInit, MemoryGauge, Overlay, OverlayRenewal, OverlayRequest, Program, ToKeeper,
};
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::net::{UnixDatagram, UnixStream};
use tokio::time::timeout;

use crate::ExecError;
use crate::memory::Meter;
use crate::nursery::Nursery;
use crate::output::Output;
use crate::slot::{
    Furnishing, Handles, Keeper, NotMounted, Purpose, STEP, Worker, babble, timed_out,
};

/// Timeout for an interpreter to start.
const READY: Duration = Duration::from_secs(30);

/// Makes the workers of a slot.
pub(crate) struct Programs {
    first: First,
}

/// The host's handles of a worker for programs, besides the guest's socket.
pub(crate) struct Home {
    pub(crate) init: Init,
    pub(crate) out: Output,
    pub(crate) err: Output,
    /// The guest's working directory. It outlives the worker.
    pub(crate) workspace: OwnedFd,
    /// The guest's first process, if the host interrupts it directly and not through init.
    pub(crate) guest: Option<OwnedFd>,
    /// The socket on which a guest that installs packages connects to the proxy.
    pub(crate) listener: Option<OwnedFd>,
    /// The usage of a process that entered the worker from outside.
    pub(crate) used: Option<Exit>,
    pub(crate) meter: Arc<Meter>,
    /// Where a user's directory can be mounted; `None` for a guest that installs packages.
    entrance: Option<Entrance>,
    /// The worker's overlay, if it has one.
    overlay: Option<Mounted>,
    /// The directory with the overlay's upper layers, `upper-0` and its successors. It outlives the
    /// worker.
    pub(crate) layers: Option<OwnedFd>,
}

/// The descriptors that a keeper needs to mount something in a worker.
struct Entrance {
    user: OwnedFd,
    mounts: OwnedFd,
    place: OwnedFd,
}

/// The overlay of a worker.
struct Mounted {
    overlay: Overlay,
    /// The mount namespace in which the layers are mounted.
    stage: OwnedFd,
    is_at_real_path: bool,
}

/// The connection to a worker's init.
pub(crate) struct Init {
    socket: UnixDatagram,
    /// The end of the guest, if it was received while waiting for something else.
    ended: Option<i32>,
}

/// A message of init about its guest.
pub(crate) enum GuestNews {
    /// The guest's first process has exited with this wait status.
    Ended(i32),
    /// The stdout and stderr of a cell that starts.
    Streams(Output, Output),
}

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
        if furnishing.purpose == Purpose::Session {
            codexec_sandbox::tell_speakers(&ours)?;
        }
        let (out_sender, out) = pipe::pipe()?;
        let (err_sender, err) = pipe::pipe()?;
        // The guest's ends block, like ordinary stdio.
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
        let handles = keeper.ask_for_worker(&asked, &fds).await?;
        let mut roots: Vec<i32> = handles.process_id().into_iter().collect();
        let mut init = Init { socket: UnixDatagram::from_std(handles.packets()?)?, ended: None };
        let handles = Handles::new(handles);
        let mut shown = init.ready().await?.into_iter();
        let workspace = shown.next().ok_or_else(babble)?;
        let disk = shown.next().ok_or_else(babble)?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let (out, err) = (Output::new(out)?, Output::new(err)?);
        let is_fetching = matches!(self.first, First::Fetches(_));
        let listener = if is_fetching { shown.next() } else { None };
        let entrance = match (is_fetching, shown.next(), shown.next(), shown.next()) {
            (false, Some(user), Some(mounts), Some(place)) => {
                Some(Entrance { user, mounts, place })
            }
            _ => None,
        };
        let mut guest = None;
        if let Some(nursery) = nursery {
            let namespaces: Vec<OwnedFd> = shown.collect();
            let born =
                nursery.fork(purpose, own, &namespaces).await?.map_err(ExecError::Sandbox)?;
            roots.extend(born.pid());
            guest = is_session.then_some(born.pidfd);
        }
        let meter = Arc::new(Meter::new(gauge, roots.clone(), disk));
        let home = Home {
            init,
            out,
            err,
            workspace,
            guest,
            listener,
            used: None,
            meter,
            entrance,
            overlay: None,
            layers: None,
        };
        let mut worker = Worker { socket, handles, home: Some(home), roots };
        // Only the guest holds its ends now, so the host sees end of file when it exits.
        drop(theirs);
        if self.says_when_ready() {
            timeout(READY, worker.walls()).await.map_err(|_| timed_out())??;
        }
        Ok(worker)
    }

    /// True for a warm interpreter and for Node, which report when they wait for code; memory that
    /// they hold by then is not the guest's. Other programs start together with their code.
    fn says_when_ready(&self) -> bool {
        matches!(self.first, First::Enters | First::Started(_))
    }
}

impl Home {
    /// Returns the user and the mount namespace of a guest in which something can be mounted.
    pub(crate) fn namespaces(&self) -> Option<io::Result<(OwnedFd, OwnedFd)>> {
        let Entrance { user, mounts, .. } = self.entrance.as_ref()?;
        Some(user.try_clone().and_then(|user| Ok((user, mounts.try_clone()?))))
    }

    /// Has the keeper mount this directory in the running worker, at `/box/work` and at its real
    /// path. `lower` is the directory's mount. Works once for each worker.
    pub(crate) async fn mount(
        &mut self,
        keeper: &Keeper,
        overlay: Overlay,
        lower: OwnedFd,
    ) -> Result<(), NotMounted> {
        let entrance = self.entrance.as_ref().ok_or_else(babble)?;
        let fds = [&entrance.user, &entrance.mounts, &lower, &entrance.place];
        let request = OverlayRequest { overlay: overlay.clone(), renewal: None };
        let (is_at_real_path, beside) = keeper.mount(request, fds.map(OwnedFd::as_fd)).await?;
        let mut beside = beside.into_iter();
        let stage = beside.next().ok_or_else(babble)?;
        self.layers = beside.next();
        if let Some(layers) = &self.layers {
            self.meter.add_disk(layers.try_clone()?);
        }
        self.overlay = Some(Mounted { overlay, stage, is_at_real_path });
        Ok(())
    }

    /// Replaces the worker's overlay by one over `lower` with the upper layer `upper-<generation>`,
    /// which is created if missing.
    ///
    /// After an error the two paths of the directory may show different layers, so the worker must
    /// not be used again.
    pub(crate) async fn renew(
        &self,
        keeper: &Keeper,
        generation: u32,
        lower: OwnedFd,
    ) -> Result<(), NotMounted> {
        let entrance = self.entrance.as_ref().ok_or_else(babble)?;
        let mounted = self.overlay.as_ref().ok_or_else(babble)?;
        let fds = [&entrance.user, &entrance.mounts, &lower, &mounted.stage];
        let is_at_real_path = mounted.is_at_real_path;
        let renewal = Some(OverlayRenewal { generation, is_at_real_path });
        let request = OverlayRequest { overlay: mounted.overlay.clone(), renewal };
        keeper.mount(request, fds.map(OwnedFd::as_fd)).await.map(drop)
    }

    /// Sends the guest an interrupt, which it may ignore.
    pub(crate) fn interrupt(&self, handles: &Handles) {
        match &self.guest {
            Some(guest) => codexec_sandbox::interrupt(guest),
            None => handles.interrupt(),
        }
    }
}

impl Init {
    /// Waits for the next message of init. Cancel-safe.
    pub(crate) async fn news(&mut self) -> io::Result<GuestNews> {
        if let Some(status) = self.ended.take() {
            return Ok(GuestNews::Ended(status));
        }
        let (said, fds) = self.hears().await?;
        news(&said, fds)
    }

    /// Returns the output pipes of the current cell if they have arrived. Does not wait, and reads
    /// the socket directly, because the runtime's readiness state may be stale.
    pub(crate) fn waiting_streams(&mut self) -> Option<(Output, Output)> {
        let (said, fds) = FromInit::receive(&self.socket).ok()??;
        match news(&said, fds).ok()? {
            GuestNews::Streams(out, err) => Some((out, err)),
            GuestNews::Ended(status) => {
                self.ended = Some(status);
                None
            }
        }
    }

    async fn ready(&mut self) -> Result<Vec<OwnedFd>, ExecError> {
        match timeout(STEP, self.hears()).await.map_err(|_| timed_out())?? {
            (FromInit::Ready, fds) => Ok(fds),
            (FromInit::Broken(broken), _) => Err(ExecError::Sandbox(broken)),
            (FromInit::Ended { .. } | FromInit::Streams, _) => Err(babble()),
        }
    }

    async fn hears(&self) -> io::Result<(FromInit, Vec<OwnedFd>)> {
        let receive = || FromInit::receive(&self.socket);
        let heard = self.socket.async_io(Interest::READABLE, receive).await?;
        heard.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

fn news(said: &FromInit, fds: Vec<OwnedFd>) -> io::Result<GuestNews> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    match said {
        FromInit::Ended { status } => Ok(GuestNews::Ended(*status)),
        FromInit::Streams => {
            let [out, err] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| invalid())?;
            let open = |fd| Output::new(pipe::Receiver::from_owned_fd(fd)?);
            Ok(GuestNews::Streams(open(out)?, open(err)?))
        }
        FromInit::Ready | FromInit::Broken(_) => Err(invalid()),
    }
}
