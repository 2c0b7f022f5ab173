//! Workers for programs (Python, Bash, Node): how they are made, and what the host holds of them.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{
    FirstProcess, FromInit, LayerLimits, MemoryGauge, Overlay, OverlayRenewal, OverlayTask,
    ProgramGuest, ToKeeper, WorkerExit,
};
use tokio::io::Interest;
use tokio::net::unix::pipe;
use tokio::net::{UnixDatagram, UnixStream};
use tokio::time::timeout;

use crate::ExecError;
use crate::memory::MemoryMeter;
use crate::nursery::Nursery;
use crate::output::OutputPipe;
use crate::slot::{
    Keeper, KillOnDrop, MountError, STEP, Worker, WorkerOptions, WorkerPurpose, protocol_error,
    timeout_error,
};
use crate::stdin::{GuestStdin, StdinPump};

/// Timeout for an interpreter to start.
const READY: Duration = Duration::from_secs(30);

/// Makes the workers of a slot.
pub(crate) struct ProgramLauncher {
    first: FirstProcess,
}

/// The host's handles of a worker for programs, besides the guest's socket.
pub(crate) struct ProgramWorker {
    pub(crate) init: InitLink,
    /// The write end of the guest's stdin, until the guest gets its job.
    stdin: Option<pipe::Sender>,
    /// Writes the guest's stdin, if the guest has any.
    stdin_pump: Option<StdinPump>,
    pub(crate) out: OutputPipe,
    pub(crate) err: OutputPipe,
    /// The guest's working directory. It outlives the worker.
    pub(crate) workspace: OwnedFd,
    /// The guest's first process, if the host interrupts it directly and not through init.
    pub(crate) guest: Option<OwnedFd>,
    /// The socket on which a guest that installs packages connects to the proxy.
    pub(crate) listener: Option<OwnedFd>,
    /// The usage of a process that entered the worker from outside.
    pub(crate) used: Option<WorkerExit>,
    pub(crate) meter: Arc<MemoryMeter>,
    /// Where a user's directory can be mounted; `None` for a guest that installs packages.
    mount_handles: Option<MountHandles>,
    /// The keeper's child that has made the stage of this worker's overlay waits for the overlay on
    /// this socket.
    pub(crate) overlay_sink: Option<OwnedFd>,
    /// The worker's overlay, if it has one.
    overlay: Option<WorkerOverlay>,
    /// The directory with the overlay's upper layers, `upper-0` and its successors. It outlives the
    /// worker.
    pub(crate) layers: Option<OwnedFd>,
}

/// The descriptors that a keeper needs to mount something in a worker.
struct MountHandles {
    user: OwnedFd,
    mounts: OwnedFd,
    /// The mount point for the directory's real path.
    real_path_target: OwnedFd,
}

/// The overlay of a worker.
struct WorkerOverlay {
    overlay: Overlay,
    /// The mount namespace in which the layers are mounted.
    stage: OwnedFd,
    is_at_real_path: bool,
}

/// The connection to a worker's init.
pub(crate) struct InitLink {
    socket: UnixDatagram,
    /// The end of the guest, if it was received while waiting for something else.
    ended: Option<i32>,
}

/// A message of init about its guest.
pub(crate) enum InitEvent {
    /// The guest's first process has exited with this wait status.
    Ended(i32),
    /// The stdout and stderr of a cell that starts.
    Streams(OutputPipe, OutputPipe),
}

impl ProgramLauncher {
    pub(crate) fn new(first: FirstProcess) -> ProgramLauncher {
        ProgramLauncher { first }
    }

    pub(crate) async fn spawn(
        &self,
        keeper: &Keeper,
        nursery: Option<&Nursery>,
        gauge: Option<MemoryGauge>,
        options: WorkerOptions,
    ) -> Result<Worker, ExecError> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        if options.purpose == WorkerPurpose::Session {
            codexec_sandbox::enable_peer_credentials(&ours)?;
        }
        let StandardPipes { stdin, out, err, guest_ends: [their_in, their_out, their_err] } =
            StandardPipes::new()?;
        let theirs: [OwnedFd; 4] = [theirs.into(), their_in, their_out, their_err];
        let own = theirs.each_ref().map(OwnedFd::as_fd);
        let WorkerOptions { purpose, mounts } = options;
        let (targets, mounts): (Vec<PathBuf>, Vec<OwnedFd>) = mounts.into_iter().unzip();
        let mut fds: Vec<BorrowedFd<'_>> = own.to_vec();
        fds.extend(mounts.iter().map(OwnedFd::as_fd));
        let is_session = purpose == WorkerPurpose::Session;
        let program = ProgramGuest { first: self.first.clone(), mounts: targets, is_session };
        let request = ToKeeper::Program(program);
        let handles = keeper.request_worker(&request, &fds).await?;
        let mut roots: Vec<i32> = handles.process_id().into_iter().collect();
        let mut init =
            InitLink { socket: UnixDatagram::from_std(handles.packets()?)?, ended: None };
        let handles = KillOnDrop::new(handles);
        let mut handed_over = init.wait_until_ready().await?.into_iter();
        let workspace = handed_over.next().ok_or_else(protocol_error)?;
        let disk = handed_over.next().ok_or_else(protocol_error)?;
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let is_fetching = matches!(self.first, FirstProcess::Fetches(_));
        let listener = if is_fetching { handed_over.next() } else { None };
        let mount_handles =
            match (is_fetching, handed_over.next(), handed_over.next(), handed_over.next()) {
                (false, Some(user), Some(mounts), Some(real_path_target)) => {
                    Some(MountHandles { user, mounts, real_path_target })
                }
                _ => None,
            };
        let mut guest = None;
        if let Some(nursery) = nursery {
            let namespaces: Vec<OwnedFd> = handed_over.collect();
            let guest_process =
                nursery.fork(purpose, own, &namespaces).await?.map_err(ExecError::Sandbox)?;
            roots.extend(guest_process.pid());
            guest = is_session.then_some(guest_process.pidfd);
        }
        let meter = Arc::new(MemoryMeter::new(gauge, roots.clone(), disk));
        let program = ProgramWorker {
            init,
            stdin: Some(stdin).filter(|_| !is_fetching),
            stdin_pump: None,
            out,
            err,
            workspace,
            guest,
            listener,
            used: None,
            meter,
            mount_handles,
            overlay_sink: None,
            overlay: None,
            layers: None,
        };
        let mut worker = Worker { socket, handles, program: Some(program), roots };
        // Only the guest holds its ends now, so the host sees end of file when it exits.
        drop(theirs);
        if self.reports_ready() {
            timeout(READY, worker.wait_until_confined()).await.map_err(|_| timeout_error())??;
        }
        Ok(worker)
    }

    /// True for a warm interpreter and for Node, which report when they wait for code; memory that
    /// they hold by then is not the guest's. Other programs start together with their code.
    fn reports_ready(&self) -> bool {
        matches!(self.first, FirstProcess::Enters | FirstProcess::Started(_))
    }
}

/// The pipes of a guest's standard streams.
struct StandardPipes {
    stdin: pipe::Sender,
    out: OutputPipe,
    err: OutputPipe,
    /// The guest's stdin, stdout and stderr.
    guest_ends: [OwnedFd; 3],
}

impl StandardPipes {
    fn new() -> io::Result<StandardPipes> {
        let (stdin, in_receiver) = pipe::pipe()?;
        let (out_sender, out) = pipe::pipe()?;
        let (err_sender, err) = pipe::pipe()?;
        // The guest's ends block, like ordinary stdio.
        let guest_ends = [
            in_receiver.into_blocking_fd()?,
            out_sender.into_blocking_fd()?,
            err_sender.into_blocking_fd()?,
        ];
        Ok(StandardPipes {
            stdin,
            out: OutputPipe::new(out),
            err: OutputPipe::new(err),
            guest_ends,
        })
    }
}

impl ProgramWorker {
    /// Starts writing this to the guest's stdin.
    pub(crate) fn feed_stdin(&mut self, source: GuestStdin) {
        self.stdin_pump = self.stdin.take().map(|sender| StdinPump::start(source, sender));
    }

    /// Closes the guest's stdin, unless something feeds it.
    pub(crate) fn close_unused_stdin(&mut self) {
        self.stdin = None;
    }

    /// Returns the user and the mount namespace of a guest in which something can be mounted.
    pub(crate) fn namespaces(&self) -> Option<io::Result<(OwnedFd, OwnedFd)>> {
        let MountHandles { user, mounts, .. } = self.mount_handles.as_ref()?;
        Some(user.try_clone().and_then(|user| Ok((user, mounts.try_clone()?))))
    }

    /// Has the keeper make the stage for an overlay, which is sent over `overlay_sink` later. Does
    /// nothing if the stage is made already.
    pub(crate) fn prepare_stage(
        &mut self,
        keeper: &Keeper,
        limits: LayerLimits,
    ) -> Result<(), ExecError> {
        if self.overlay_sink.is_some() {
            return Ok(());
        }
        let mount_handles = self.mount_handles.as_ref().ok_or_else(protocol_error)?;
        let MountHandles { user, mounts, real_path_target } = mount_handles;
        let (sink, source) = codexec_sandbox::packet_pair()?;
        let fds = [user, mounts, real_path_target, &source].map(OwnedFd::as_fd);
        keeper.send(OverlayTask::Mount(limits), &fds)?;
        self.overlay_sink = Some(sink);
        Ok(())
    }

    /// Waits until the keeper has mounted the overlay that was sent over `overlay_sink`, at
    /// `/box/work` and at its real path. Works once for each worker.
    pub(crate) async fn wait_for_mount(
        &mut self,
        keeper: &Keeper,
        overlay: Overlay,
    ) -> Result<(), MountError> {
        let (is_at_real_path, fds) = keeper.wait_for_mount(&overlay.real_path).await?;
        let mut fds = fds.into_iter();
        let stage = fds.next().ok_or_else(protocol_error)?;
        self.layers = fds.next();
        if let Some(layers) = &self.layers {
            self.meter.add_disk(layers.try_clone()?);
        }
        self.overlay = Some(WorkerOverlay { overlay, stage, is_at_real_path });
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
    ) -> Result<(), MountError> {
        let mounted = self.overlay.as_ref().ok_or_else(protocol_error)?;
        let renewal = OverlayRenewal { generation, is_at_real_path: mounted.is_at_real_path };
        let task = OverlayTask::Renew(mounted.overlay.clone(), renewal);
        self.change_overlay(keeper, task, Some(lower)).await
    }

    /// Lets the host make folders in the upper layers until the next renewal, even if the guest has
    /// used up its limit of files.
    pub(crate) async fn make_room(&self, keeper: &Keeper) -> Result<(), MountError> {
        let mounted = self.overlay.as_ref().ok_or_else(protocol_error)?;
        self.change_overlay(keeper, OverlayTask::MakeRoom(mounted.overlay.limits), None).await
    }

    async fn change_overlay(
        &self,
        keeper: &Keeper,
        task: OverlayTask,
        lower: Option<OwnedFd>,
    ) -> Result<(), MountError> {
        let MountHandles { user, mounts, .. } =
            self.mount_handles.as_ref().ok_or_else(protocol_error)?;
        let mounted = self.overlay.as_ref().ok_or_else(protocol_error)?;
        let fds: Vec<_> = [user, mounts, &mounted.stage].into_iter().chain(&lower).collect();
        let fds: Vec<_> = fds.into_iter().map(OwnedFd::as_fd).collect();
        keeper.send(task, &fds)?;
        keeper.wait_for_mount(&mounted.overlay.real_path).await.map(drop)
    }

    /// Sends the guest an interrupt, which it may ignore.
    pub(crate) fn interrupt(&self, handles: &KillOnDrop) {
        match &self.guest {
            Some(guest) => codexec_sandbox::interrupt_process(guest),
            None => handles.interrupt(),
        }
    }
}

impl InitLink {
    /// Waits for the next message of init. Cancel-safe.
    pub(crate) async fn next_event(&mut self) -> io::Result<InitEvent> {
        if let Some(status) = self.ended.take() {
            return Ok(InitEvent::Ended(status));
        }
        let (message, fds) = self.receive().await?;
        decode_event(&message, fds)
    }

    /// Returns the output pipes of the current cell if they have arrived. Does not wait, and reads
    /// the socket directly, because the runtime's readiness state may be stale.
    pub(crate) fn try_take_streams(&mut self) -> Option<(OutputPipe, OutputPipe)> {
        let (message, fds) = FromInit::receive(&self.socket).ok()??;
        match decode_event(&message, fds).ok()? {
            InitEvent::Streams(out, err) => Some((out, err)),
            InitEvent::Ended(status) => {
                self.ended = Some(status);
                None
            }
        }
    }

    async fn wait_until_ready(&mut self) -> Result<Vec<OwnedFd>, ExecError> {
        match timeout(STEP, self.receive()).await.map_err(|_| timeout_error())?? {
            (FromInit::Ready, fds) => Ok(fds),
            (FromInit::Broken(broken), _) => Err(ExecError::Sandbox(broken)),
            (FromInit::Ended { .. } | FromInit::Streams, _) => Err(protocol_error()),
        }
    }

    async fn receive(&self) -> io::Result<(FromInit, Vec<OwnedFd>)> {
        let receive = || FromInit::receive(&self.socket);
        let received = self.socket.async_io(Interest::READABLE, receive).await?;
        received.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

fn decode_event(message: &FromInit, fds: Vec<OwnedFd>) -> io::Result<InitEvent> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    match message {
        FromInit::Ended { status } => Ok(InitEvent::Ended(*status)),
        FromInit::Streams => {
            let [out, err] = <[OwnedFd; 2]>::try_from(fds).map_err(|_| invalid())?;
            let open = |fd| pipe::Receiver::from_owned_fd(fd).map(OutputPipe::new);
            Ok(InitEvent::Streams(open(out)?, open(err)?))
        }
        FromInit::Ready | FromInit::Broken(_) => Err(invalid()),
    }
}
