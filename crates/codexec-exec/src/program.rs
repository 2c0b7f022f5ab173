//! Workers for programs: how one is made, and what the host holds of it.

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
    pub(crate) guest: Option<OwnedFd>,
    /// Where a guest that fetches asks us to.
    pub(crate) listener: Option<OwnedFd>,
    /// What a process that entered from outside has used.
    pub(crate) used: Option<Exit>,
    pub(crate) meter: Arc<Meter>,
    /// Where the worker can be given a directory of the user's; `None` for a guest that fetches.
    entrance: Option<Entrance>,
    /// The worker's overlay, if it has one.
    overlay: Option<Mounted>,
    /// The directory that holds the upper layers of the overlay, `upper-0` and its successors.
    /// They outlive the worker.
    pub(crate) layers: Option<OwnedFd>,
}

/// What a keeper needs to mount something in a worker.
struct Entrance {
    user: OwnedFd,
    mounts: OwnedFd,
    place: OwnedFd,
}

/// An overlay as a worker has it.
struct Mounted {
    overlay: Overlay,
    /// The mount namespace in which its layers are mounted.
    stage: OwnedFd,
    is_at_real_path: bool,
}

/// The way to a worker's first process.
pub(crate) struct Init {
    socket: UnixDatagram,
    /// Heard while something else was looked for.
    ended: Option<i32>,
}

/// What a worker's first process says of its guest.
pub(crate) enum GuestNews {
    /// The first process of the guest has ended; its wait status.
    Ended(i32),
    /// The output and error of a cell that begins.
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
    /// The user and the mount namespace of a guest that something can be attached for.
    pub(crate) fn namespaces(&self) -> Option<io::Result<(OwnedFd, OwnedFd)>> {
        let Entrance { user, mounts, .. } = self.entrance.as_ref()?;
        Some(user.try_clone().and_then(|user| Ok((user, mounts.try_clone()?))))
    }

    /// Has the keeper show the living worker this directory, at `/box/work` and at its real path.
    /// `lower` is its mount. Once in a worker's life.
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

    /// Replaces the worker's overlay by one with the upper layer `upper-<generation>`, which is
    /// made unless it is there, over `lower`.
    ///
    /// After an error the two paths of the directory may show different layers: the worker must
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

    /// Tells the guest to stop what it does. It may not listen.
    pub(crate) fn interrupt(&self, handles: &Handles) {
        match &self.guest {
            Some(guest) => codexec_sandbox::interrupt(guest),
            None => handles.interrupt(),
        }
    }
}

impl Init {
    /// Waits for what init says next. Cancel-safe.
    pub(crate) async fn news(&mut self) -> io::Result<GuestNews> {
        if let Some(status) = self.ended.take() {
            return Ok(GuestNews::Ended(status));
        }
        let (said, fds) = self.hears().await?;
        news(&said, fds)
    }

    /// The output of the cell that has begun, if it is here and has not been heard of. Does not
    /// wait, and does not ask the runtime, which may know of it later.
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
