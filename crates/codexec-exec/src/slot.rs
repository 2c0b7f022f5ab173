//! A slot: a keeper in its cgroup, with one confined worker that waits for a guest.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{
    Cgroups, FromKeeper, LayerError, LayerLimits, MissingLayer, Overlay, OverlayTask, Posture,
    SlotCgroup, ToKeeper, WorkerExit, WorkerHandles, ZygoteLink, parse_confined, process_id,
};
use codexec_types::Limits;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::{UnixDatagram, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::ExecError;
use crate::nursery::Nursery;
use crate::program::{InitEvent, InitLink, ProgramLauncher, ProgramWorker};
use crate::stdin::GuestStdin;
use crate::zygote::{Zygote, run_blocking};

/// Timeout of each step of building a slot.
pub(crate) const STEP: Duration = Duration::from_secs(10);

/// Memory for the keeper and the worker itself, on top of the guest's.
const OVERHEAD_BYTES: u64 = 64 << 20;
/// The keeper, the worker or its init, a nursery, and one spare.
const PROCESSES: u32 = 4;

/// The number of workers of a slot that are measured before they get code. All are made in the same
/// way, and the kernel takes its time to add up the memory of a cgroup.
const MEASURED_BASELINES: u8 = 4;

pub(crate) struct Slot {
    base: SlotBase,
    worker: Worker,
}

/// The parts of a slot that outlive its worker.
pub(crate) struct SlotBase {
    keeper: Keeper,
    nursery: Option<Nursery>,
    pub(crate) group: Option<SlotCgroup>,
    pub(crate) posture: Posture,
    launcher: Option<ProgramLauncher>,
    /// The zygote that the keeper was forked from.
    pub(crate) zygote: Arc<ZygoteLink>,
    /// The least memory that any worker of this slot held before it got code. Files of the guest
    /// before it may still be in memory and inflate a measurement, so the minimum is the right one.
    baseline_bytes: u64,
    /// How many more workers of this slot are measured for the baseline.
    baselines_left: u8,
    /// The memory limit of the cgroup, and whether it is raised for a user's directory.
    memory_limit_bytes: u64,
    has_raised_limit: bool,
    /// The pool's generation in which the slot was made.
    generation: u64,
    /// Counts the slot in its pool. Sessions are bounded by the server, so their slots have none.
    room: Option<OwnedSemaphorePermit>,
}

/// A worker process, waiting or with a guest in it.
pub(crate) struct Worker {
    pub(crate) socket: UnixStream,
    pub(crate) handles: KillOnDrop,
    pub(crate) program: Option<ProgramWorker>,
    /// Host process ids from which all of the guest's processes descend. The last one is the
    /// closest to the guest.
    pub(crate) roots: Vec<i32>,
}

/// The use that a worker for programs is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WorkerPurpose {
    #[default]
    Execution,
    Session,
}

/// Options that are fixed when a worker for programs is made.
#[derive(Default)]
pub(crate) struct WorkerOptions {
    pub(crate) purpose: WorkerPurpose,
    /// The mount targets, each with its mount.
    pub(crate) mounts: Vec<(PathBuf, OwnedFd)>,
}

/// Process handles of a worker. Dropping this kills the worker.
pub(crate) struct KillOnDrop(Arc<WorkerHandles>);

/// A slot while its worker is busy.
pub(crate) struct BusySlot {
    pub(crate) base: SlotBase,
    oom_kills_before: u64,
    refused_before: u64,
    /// True until the nursery has reported the end of its guest.
    is_nursing: bool,
    /// The usage of that guest, until the worker's exit is known as well.
    entered: Option<WorkerExit>,
    /// The worker's exit, if it arrived while the host waited for another message.
    exit: Option<WorkerExit>,
}

pub(crate) struct Keeper(UnixDatagram);

/// Why a directory could not be mounted in a worker.
pub(crate) enum MountError {
    /// The worker has exited.
    WorkerEnded(WorkerExit),
    Failed(ExecError),
}

impl MountError {
    fn into_error(self) -> ExecError {
        match self {
            MountError::WorkerEnded(_) => io::Error::from(io::ErrorKind::UnexpectedEof).into(),
            MountError::Failed(error) => error,
        }
    }
}

impl<E: Into<ExecError>> From<E> for MountError {
    fn from(error: E) -> MountError {
        MountError::Failed(error.into())
    }
}

impl Slot {
    /// Starts writing this to the guest's stdin. Returns false for guests without stdin.
    pub(crate) fn feed_stdin(&mut self, stdin: GuestStdin) -> bool {
        let Some(program) = &mut self.worker.program else { return false };
        program.feed_stdin(stdin);
        true
    }

    pub(crate) async fn open(
        zygote: &Zygote,
        limits: Limits,
        cgroups: Result<&Cgroups, MissingLayer>,
    ) -> Result<Slot, ExecError> {
        let keeper = Keeper(UnixDatagram::from_std(zygote.link.start_keeper()?.into_socket())?);
        let (FromKeeper::Hello, fds) = keeper.receive_in_time().await? else {
            return Err(protocol_error());
        };
        let pid =
            fds.first().and_then(|pidfd| process_id(pidfd.as_fd())).ok_or_else(protocol_error)?;
        let nursery = match &zygote.warm {
            Some(warm) => Some(warm.fork_nursery().await?),
            None => None,
        };
        let mut posture = Posture { missing: zygote.missing.clone() };
        let group = match cgroups {
            Ok(cgroups) => {
                let mut inside = vec![pid];
                inside.extend(nursery.as_ref().map(|nursery| nursery.pid));
                let has_files = zygote.first.is_some();
                Some(make_group(cgroups.clone(), limits, has_files, inside).await?)
            }
            Err(missing) => {
                posture.missing.push(missing);
                None
            }
        };
        ToKeeper::Build(zygote.launch.clone()).send(&keeper.0, &[])?;
        match keeper.receive_in_time().await?.0 {
            FromKeeper::Built { missing } => posture.missing.extend(missing),
            FromKeeper::Broken(broken) => return Err(ExecError::Sandbox(broken)),
            FromKeeper::Hello
            | FromKeeper::Spawned
            | FromKeeper::Mounted { .. }
            | FromKeeper::NotMounted(_)
            | FromKeeper::Exited(_) => return Err(protocol_error()),
        }
        let launcher = zygote.first.clone().map(ProgramLauncher::new);
        let zygote = Arc::clone(&zygote.link);
        let base = SlotBase {
            keeper,
            nursery,
            group,
            posture,
            memory_limit_bytes: memory_limit_bytes(limits, launcher.is_some()),
            has_raised_limit: false,
            launcher,
            zygote,
            baseline_bytes: u64::MAX,
            baselines_left: MEASURED_BASELINES,
            generation: 0,
            room: None,
        };
        base.fill(WorkerOptions::default()).await
    }

    pub(crate) fn posture(&self) -> &Posture {
        &self.base.posture
    }

    /// Notes the pool's generation, and the permit that counts the slot in its pool.
    pub(crate) fn in_pool(mut self, generation: u64, room: Option<OwnedSemaphorePermit>) -> Slot {
        (self.base.generation, self.base.room) = (generation, room);
        self
    }

    /// Stops counting the slot in its pool.
    pub(crate) fn leave_pool(mut self) -> Slot {
        self.base.room = None;
        self
    }

    /// True if the slot is counted in its pool, or can be.
    pub(crate) fn has_room(&mut self, pool: &Arc<Semaphore>) -> bool {
        if self.base.room.is_none() {
            self.base.room = Arc::clone(pool).try_acquire_owned().ok();
        }
        self.base.room.is_some()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.base.generation
    }

    /// True if the waiting worker is still alive.
    pub(crate) fn is_alive(&self) -> bool {
        // A waiting worker writes nothing, so anything readable is end of file.
        let mut byte = [0];
        matches!(self.worker.socket.try_read(&mut byte), Err(error)
            if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Replaces the waiting worker by one with these options. Workers of the built-in engine have
    /// none and are kept.
    pub(crate) async fn replace_worker(self, options: WorkerOptions) -> Result<Slot, ExecError> {
        if self.base.launcher.is_none() {
            return Ok(self);
        }
        let (mut busy, worker) = self.occupy();
        worker.handles.kill();
        busy.wait_for_exit().await?;
        busy.base.fill(options).await
    }

    /// Prepares the waiting worker for a user's directory. The built-in engine has no files and
    /// needs nothing.
    pub(crate) fn prepare_stage(&mut self, limits: LayerLimits) -> Result<(), ExecError> {
        match &mut self.worker.program {
            Some(program) => program.prepare_stage(&self.base.keeper, limits),
            None => Ok(()),
        }
    }

    /// Returns the socket over which a prepared worker gets its overlay.
    pub(crate) fn take_overlay_sink(&mut self) -> Option<OwnedFd> {
        self.worker.program.as_mut()?.overlay_sink.take()
    }

    /// Waits until a user's directory, which was sent over the socket, is mounted in the waiting
    /// worker.
    pub(crate) async fn mount(mut self, overlay: Overlay) -> Result<Slot, ExecError> {
        let Some(program) = &mut self.worker.program else { return Ok(self) };
        let raised_group = self.base.group.as_ref().filter(|_| overlay.is_writable);
        let limit_bytes = self.base.memory_limit_bytes + overlay.limits.max_bytes;
        self.base.has_raised_limit |= raised_group.is_some();
        let mount = program.wait_for_mount(&self.base.keeper, overlay);
        // The keeper works while the host raises the limit.
        let raise = async { raised_group.map_or(Ok(()), |group| group.limit_memory(limit_bytes)) };
        let (mounted, raised) = tokio::join!(mount, raise);
        raised?;
        mounted.map_err(MountError::into_error)?;
        Ok(self)
    }

    pub(crate) fn occupy(self) -> (BusySlot, Worker) {
        let Slot { base, mut worker } = self;
        if let Some(program) = &mut worker.program {
            // A stage that was prepared for nothing ends now.
            program.overlay_sink = None;
        }
        let (mut oom_kills_before, mut refused_before) = (0, 0);
        if let Some(group) = &base.group {
            oom_kills_before = group.oom_kills();
            if base.launcher.is_some() {
                refused_before = group.refused_processes();
                group.reset_peak();
            }
        }
        let is_nursing = base.nursery.is_some();
        let (entered, exit) = (None, None);
        let busy = BusySlot { base, oom_kills_before, refused_before, is_nursing, entered, exit };
        (busy, worker)
    }
}

impl SlotBase {
    async fn fill(mut self, options: WorkerOptions) -> Result<Slot, ExecError> {
        let mut worker = match &self.launcher {
            Some(launcher) => {
                let gauge = self.group.as_ref().map(SlotCgroup::gauge);
                launcher.spawn(&self.keeper, self.nursery.as_ref(), gauge, options).await?
            }
            None => self.keeper.spawn().await?,
        };
        if let Some(meter) =
            worker.program.as_mut().and_then(|program| Arc::get_mut(&mut program.meter))
        {
            if self.baselines_left > 0 {
                self.baselines_left -= 1;
                self.baseline_bytes = self.baseline_bytes.min(meter.held_bytes());
            }
            meter.set_baseline(self.baseline_bytes);
        }
        Ok(Slot { base: self, worker })
    }
}

impl BusySlot {
    /// Waits for the next event of a guest that is a program. Cancel-safe.
    pub(crate) async fn next_guest_event(
        &mut self,
        init: &mut InitLink,
        used: &mut Option<WorkerExit>,
    ) -> io::Result<InitEvent> {
        match &self.base.nursery {
            Some(nursery) if self.is_nursing => {
                let (status, exit) = nursery.wait_for_exit().await?;
                self.is_nursing = false;
                *used = Some(exit);
                Ok(InitEvent::Ended(status))
            }
            Some(_) => std::future::pending().await,
            None => init.next_event().await,
        }
    }

    /// Waits until the worker and all its descendants are dead. Cancel-safe.
    pub(crate) async fn wait_for_exit(&mut self) -> io::Result<WorkerExit> {
        if let (Some(nursery), true) = (&self.base.nursery, self.is_nursing) {
            self.entered = Some(nursery.wait_for_exit().await?.1);
            self.is_nursing = false;
        }
        let exit = loop {
            match self.exit.take() {
                Some(exit) => break exit,
                None => match self.base.keeper.receive().await?.0 {
                    FromKeeper::Exited(exit) => break exit,
                    // The reply to a mount request that is no longer awaited.
                    FromKeeper::Mounted { .. } | FromKeeper::NotMounted(_) => {}
                    FromKeeper::Hello
                    | FromKeeper::Built { .. }
                    | FromKeeper::Broken(_)
                    | FromKeeper::Spawned => return Err(io::ErrorKind::InvalidData.into()),
                },
            }
        };
        Ok(self.entered.take().map_or(exit, |entered| combine_usage(exit, entered)))
    }

    /// Gives the worker's directory a fresh upper layer, see [`ProgramWorker::renew`].
    pub(crate) async fn renew_overlay(
        &mut self,
        program: &ProgramWorker,
        generation: u32,
        lower: OwnedFd,
    ) -> Result<(), ExecError> {
        let renewed = program.renew(&self.base.keeper, generation, lower).await;
        renewed.map_err(|problem| self.note_mount_error(problem))
    }

    /// Makes room for folders in the worker's layers, see [`ProgramWorker::make_room`].
    pub(crate) async fn make_room(&mut self, program: &ProgramWorker) -> Result<(), ExecError> {
        let made = program.make_room(&self.base.keeper).await;
        made.map_err(|problem| self.note_mount_error(problem))
    }

    fn note_mount_error(&mut self, problem: MountError) -> ExecError {
        if let MountError::WorkerEnded(exit) = &problem {
            self.exit = Some(*exit);
        }
        problem.into_error()
    }

    /// True if the kernel's OOM killer killed a process of this slot.
    pub(crate) fn has_run_out_of_memory(&self) -> bool {
        self.base.group.as_ref().is_some_and(|group| group.oom_kills() > self.oom_kills_before)
    }

    /// True if the guest tried to start more processes than it may have.
    pub(crate) fn has_run_out_of_processes(&self) -> bool {
        let refused = |group: &SlotCgroup| group.refused_processes() > self.refused_before;
        self.base.group.as_ref().is_some_and(refused)
    }

    /// Returns whether memory and whether processes ran out since the last call.
    pub(crate) fn take_exhausted(&mut self) -> (bool, bool) {
        let Some(group) = &self.base.group else { return (false, false) };
        let now = (group.oom_kills(), group.refused_processes());
        let before = (self.oom_kills_before, self.refused_before);
        (self.oom_kills_before, self.refused_before) = now;
        (now.0 > before.0, now.1 > before.1)
    }

    /// Spawns a fresh worker in the same slot. Only after [`BusySlot::wait_for_exit`].
    pub(crate) async fn refill(self) -> Result<Slot, ExecError> {
        let mut slot = self.base.fill(WorkerOptions::default()).await?;
        // Done last, because an answer may wait for the first steps. Fails while the last guest's
        // files are still in memory; the next refill tries again.
        let base = &mut slot.base;
        if let (Some(group), true) = (&base.group, base.has_raised_limit) {
            base.has_raised_limit = group.limit_memory(base.memory_limit_bytes).is_err();
        }
        Ok(slot)
    }
}

/// Adds up the usage of two processes of one guest.
pub(crate) fn combine_usage(a: WorkerExit, b: WorkerExit) -> WorkerExit {
    WorkerExit {
        cpu_us: a.cpu_us + b.cpu_us,
        peak_bytes: a.peak_bytes.max(b.peak_bytes),
        code: a.code,
        signal: a.signal,
    }
}

/// Returns the cgroup's memory limit. The guest's files live in memory too, so the disk limit is
/// part of it; the guard bounds the guest's own memory.
fn memory_limit_bytes(limits: Limits, has_files: bool) -> u64 {
    limits.memory_bytes + OVERHEAD_BYTES + if has_files { limits.disk_bytes } else { 0 }
}

async fn make_group(
    cgroups: Cgroups,
    limits: Limits,
    has_files: bool,
    inside: Vec<i32>,
) -> Result<SlotCgroup, ExecError> {
    let memory = memory_limit_bytes(limits, has_files);
    let processes = PROCESSES + if has_files { limits.processes } else { 0 };
    run_blocking(move || {
        let group = cgroups.create_group(memory, processes)?;
        for pid in inside {
            group.add_process(pid)?;
        }
        Ok(group)
    })
    .await
}

impl Keeper {
    async fn spawn(&self) -> Result<Worker, ExecError> {
        let handles = self.request_worker(&ToKeeper::Spawn, &[]).await?;
        let socket = UnixStream::from_std(handles.stream()?)?;
        let roots = handles.process_id().into_iter().collect();
        let handles = KillOnDrop::new(handles);
        let mut worker = Worker { socket, handles, program: None, roots };
        timeout(STEP, worker.wait_until_confined()).await.map_err(|_| timeout_error())??;
        Ok(worker)
    }

    /// Asks the keeper for a new worker and returns its handles.
    pub(crate) async fn request_worker(
        &self,
        what: &ToKeeper,
        fds: &[BorrowedFd<'_>],
    ) -> Result<WorkerHandles, ExecError> {
        what.send(&self.0, fds)?;
        match self.receive_in_time().await? {
            (FromKeeper::Spawned, fds) => Ok(WorkerHandles::new(fds)?),
            (FromKeeper::Broken(broken), _) => Err(ExecError::Sandbox(broken)),
            (
                FromKeeper::Hello
                | FromKeeper::Built { .. }
                | FromKeeper::Mounted { .. }
                | FromKeeper::NotMounted(_)
                | FromKeeper::Exited(_),
                _,
            ) => Err(protocol_error()),
        }
    }

    pub(crate) fn send(&self, task: OverlayTask, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        ToKeeper::Overlay(task).send(&self.0, fds)
    }

    /// Waits until the keeper has mounted the directory at `path` in the worker. Returns whether it
    /// is also mounted at its real path, and the descriptors in the keeper's reply.
    pub(crate) async fn wait_for_mount(
        &self,
        path: &Path,
    ) -> Result<(bool, Vec<OwnedFd>), MountError> {
        match self.receive_in_time().await? {
            (FromKeeper::Mounted { is_at_real_path }, fds) => Ok((is_at_real_path, fds)),
            (FromKeeper::NotMounted(broken), _) => Err(mount_failure(path, &broken).into()),
            (FromKeeper::Exited(exit), _) => Err(MountError::WorkerEnded(exit)),
            (
                FromKeeper::Hello
                | FromKeeper::Built { .. }
                | FromKeeper::Broken(_)
                | FromKeeper::Spawned,
                _,
            ) => Err(protocol_error().into()),
        }
    }

    async fn receive_in_time(&self) -> io::Result<(FromKeeper, Vec<OwnedFd>)> {
        timeout(STEP, self.receive()).await.map_err(|_| timeout_error())?
    }

    async fn receive(&self) -> io::Result<(FromKeeper, Vec<OwnedFd>)> {
        let received = self.0.async_io(Interest::READABLE, || FromKeeper::receive(&self.0)).await?;
        received.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

impl Worker {
    /// Reads everything that the worker writes, until it closes its socket.
    pub(crate) async fn read_to_end(mut self, text: &mut Vec<u8>) -> io::Result<()> {
        self.socket.read_to_end(text).await.map(drop)
    }

    /// Waits for the worker's report that it is confined. Reads byte by byte, because the bytes
    /// after the report may be the guest's.
    pub(crate) async fn wait_until_confined(&mut self) -> Result<(), ExecError> {
        let mut report = Vec::new();
        loop {
            report.push(self.socket.read_u8().await?);
            match parse_confined(&report) {
                Some(Ok(())) => return Ok(()),
                Some(Err(broken)) => return Err(ExecError::Sandbox(broken)),
                None => {}
            }
        }
    }
}

impl KillOnDrop {
    pub(crate) fn new(handles: WorkerHandles) -> KillOnDrop {
        KillOnDrop(Arc::new(handles))
    }

    /// Returns a shared handle for another thread that may have to kill the worker.
    pub(crate) fn shared(&self) -> Arc<WorkerHandles> {
        Arc::clone(&self.0)
    }

    pub(crate) fn kill(&self) {
        self.0.kill();
    }

    /// Asks the guest's programs to terminate.
    pub(crate) fn ask_to_end(&self) {
        self.0.terminate();
    }

    /// Asks init to interrupt the guest's first process.
    pub(crate) fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.kill();
    }
}

fn mount_failure(path: &Path, broken: &LayerError) -> ExecError {
    let (path, step) = (path.display(), &broken.step);
    let error = io::Error::from_raw_os_error(broken.errno);
    ExecError::WorkingDir(format!(
        "{path} cannot be mounted: {step}: {error}; this needs Linux 6.6 or newer with \
         overlayfs, and a directory in which nothing else is mounted"
    ))
}

pub(crate) fn protocol_error() -> ExecError {
    io::Error::from(io::ErrorKind::InvalidData).into()
}

pub(crate) fn timeout_error() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
