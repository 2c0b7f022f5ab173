//! Workers for programs: how one is made, and what the host holds of it.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use codexec_sandbox::{Exit, First, FromInit, Program, ToKeeper};
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::net::{UnixDatagram, UnixStream};
use tokio::time::timeout;

use crate::ExecError;
use crate::nursery::Nursery;
use crate::output::Output;
use crate::slot::{Furnishing, Handles, Keeper, Purpose, STEP, Worker, babble, timed_out};

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
        let (init_pid, handles) = keeper.ask_for_worker(&asked, &fds).await?;
        let mut init = Init { socket: UnixDatagram::from_std(handles.packets()?)?, ended: None };
        let handles = Handles::new(handles);
        let mut shown = init.ready().await?.into_iter();
        let workspace = shown.next().ok_or_else(babble)?;
        let mut roots = vec![init_pid];
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let (out, err) = (Output::new(out)?, Output::new(err)?);
        let is_fetching = matches!(self.first, First::Fetches(_));
        let listener = if is_fetching { shown.next() } else { None };
        let mut home = Home { init, out, err, workspace, guest: None, listener, used: None };
        let Some(nursery) = nursery else {
            return Ok(Worker { socket, handles, home: Some(home), roots });
        };
        let entrance: Vec<OwnedFd> = shown.collect();
        let born = nursery.fork(purpose, own, &entrance).await?.map_err(ExecError::Sandbox)?;
        roots.push(born.pid);
        home.guest = born.pidfd;
        let mut worker = Worker { socket, handles, home: Some(home), roots };
        // Nobody but the guest holds its ends now, so its end is seen.
        drop(theirs);
        timeout(STEP, worker.walls()).await.map_err(|_| timed_out())??;
        Ok(worker)
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
