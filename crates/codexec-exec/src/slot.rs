//! A slot: a keeper in its cgroup, with one confined worker that waits for a guest.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{
    Broken, Cgroups, Exit, FromKeeper, Group, Missing, Overlay, OverlayRequest, Posture, ToKeeper,
    WorkerHandles, ZygoteLink, confined, process_id,
};
use codexec_types::Limits;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::{UnixDatagram, UnixStream};
use tokio::time::timeout;

use crate::ExecError;
use crate::nursery::Nursery;
use crate::program::{GuestNews, Home, Init, Programs};
use crate::zygote::{Zygote, blocking};

/// Timeout of each step of building a slot.
pub(crate) const STEP: Duration = Duration::from_secs(10);

/// Memory for the keeper and the worker itself, on top of the guest's.
const OVERHEAD_BYTES: u64 = 64 << 20;
/// The keeper, the worker or its init, a nursery, and one spare.
const PROCESSES: u32 = 4;

pub(crate) struct Slot {
    base: Base,
    worker: Worker,
}

/// The parts of a slot that outlive its worker.
pub(crate) struct Base {
    keeper: Keeper,
    nursery: Option<Nursery>,
    pub(crate) group: Option<Group>,
    pub(crate) posture: Posture,
    programs: Option<Programs>,
    /// The zygote that the keeper was forked from.
    pub(crate) zygote: Arc<ZygoteLink>,
    /// The least memory that any worker of this slot held before it got code. Files of the guest
    /// before it may still be in memory and inflate a measurement, so the minimum is the right one.
    at_start_bytes: u64,
    /// The memory limit of the cgroup, and whether it is raised for a user's directory.
    wall_bytes: u64,
    has_more: bool,
    /// The pool's generation in which the slot was made.
    time: u64,
}

/// A worker process, waiting or with a guest in it.
pub(crate) struct Worker {
    pub(crate) socket: UnixStream,
    pub(crate) handles: Handles,
    pub(crate) home: Option<Home>,
    /// Host process ids from which all of the guest's processes descend. The last one is the
    /// closest to the guest.
    pub(crate) roots: Vec<i32>,
}

/// The use that a worker for programs is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Purpose {
    #[default]
    Execution,
    Session,
}

/// Options that are fixed when a worker for programs is made.
#[derive(Default)]
pub(crate) struct Furnishing {
    pub(crate) purpose: Purpose,
    /// The mount targets, each with its mount.
    pub(crate) mounts: Vec<(PathBuf, OwnedFd)>,
}

/// Process handles of a worker. Dropping this kills the worker.
pub(crate) struct Handles(Arc<WorkerHandles>);

/// A slot while its worker is busy.
pub(crate) struct Busy {
    pub(crate) base: Base,
    oom_kills_before: u64,
    refused_before: u64,
    /// True until the nursery has reported the end of its guest.
    is_nursing: bool,
    /// The worker's exit, if it arrived while the host waited for another message.
    exit: Option<Exit>,
}

pub(crate) struct Keeper(UnixDatagram);

/// Why a directory could not be mounted in a worker.
pub(crate) enum NotMounted {
    /// The worker has exited.
    WorkerEnded(Exit),
    Failed(ExecError),
}

impl NotMounted {
    fn into_error(self) -> ExecError {
        match self {
            NotMounted::WorkerEnded(_) => io::Error::from(io::ErrorKind::UnexpectedEof).into(),
            NotMounted::Failed(error) => error,
        }
    }
}

impl<E: Into<ExecError>> From<E> for NotMounted {
    fn from(error: E) -> NotMounted {
        NotMounted::Failed(error.into())
    }
}

impl Slot {
    pub(crate) async fn open(
        zygote: &Zygote,
        limits: Limits,
        cgroups: Result<&Cgroups, Missing>,
    ) -> Result<Slot, ExecError> {
        let keeper = Keeper(UnixDatagram::from_std(zygote.link.keeper()?.into_socket())?);
        let (FromKeeper::Hello, beside) = keeper.says().await? else { return Err(babble()) };
        let pid = beside.first().and_then(|pidfd| process_id(pidfd.as_fd())).ok_or_else(babble)?;
        let nursery = match &zygote.warm {
            Some(warm) => Some(warm.nursery().await?),
            None => None,
        };
        let mut posture = Posture { missing: zygote.missing.clone() };
        let group = match cgroups {
            Ok(cgroups) => {
                let mut inside = vec![pid];
                inside.extend(nursery.as_ref().map(|nursery| nursery.pid));
                let has_files = zygote.first.is_some();
                Some(group(cgroups.clone(), limits, has_files, inside).await?)
            }
            Err(missing) => {
                posture.missing.push(missing);
                None
            }
        };
        ToKeeper::Build(zygote.launch.clone()).send(&keeper.0, &[])?;
        match keeper.says().await?.0 {
            FromKeeper::Built { missing } => posture.missing.extend(missing),
            FromKeeper::Broken(broken) => return Err(ExecError::Sandbox(broken)),
            FromKeeper::Hello
            | FromKeeper::Spawned
            | FromKeeper::Mounted { .. }
            | FromKeeper::NotMounted(_)
            | FromKeeper::Exited(_) => return Err(babble()),
        }
        let programs = zygote.first.clone().map(Programs::new);
        let zygote = Arc::clone(&zygote.link);
        let base = Base {
            keeper,
            nursery,
            group,
            posture,
            wall_bytes: wall_bytes(limits, programs.is_some()),
            has_more: false,
            programs,
            zygote,
            at_start_bytes: u64::MAX,
            time: 0,
        };
        base.filled(Furnishing::default()).await
    }

    pub(crate) fn posture(&self) -> &Posture {
        &self.base.posture
    }

    pub(crate) fn of(mut self, time: u64) -> Slot {
        self.base.time = time;
        self
    }

    pub(crate) fn time(&self) -> u64 {
        self.base.time
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
    pub(crate) async fn furnished(self, furnishing: Furnishing) -> Result<Slot, ExecError> {
        if self.base.programs.is_none() {
            return Ok(self);
        }
        let (mut busy, worker) = self.occupy();
        worker.handles.kill();
        busy.gone().await?;
        busy.base.filled(furnishing).await
    }

    /// Mounts a user's directory in the waiting worker. The built-in engine has no files and needs
    /// none.
    pub(crate) async fn mount(
        mut self,
        overlay: Overlay,
        lower: OwnedFd,
    ) -> Result<Slot, ExecError> {
        let Some(home) = &mut self.worker.home else { return Ok(self) };
        if let (Some(group), true) = (&self.base.group, overlay.is_writable) {
            group.limit_memory(self.base.wall_bytes + overlay.max_bytes)?;
            self.base.has_more = true;
        }
        let mounted = home.mount(&self.base.keeper, overlay, lower).await;
        mounted.map_err(NotMounted::into_error)?;
        Ok(self)
    }

    pub(crate) fn occupy(self) -> (Busy, Worker) {
        let Slot { base, worker } = self;
        let (mut oom_kills_before, mut refused_before) = (0, 0);
        if let Some(group) = &base.group {
            oom_kills_before = group.oom_kills();
            if base.programs.is_some() {
                refused_before = group.refused_processes();
                group.forget_peak();
            }
        }
        let is_nursing = base.nursery.is_some();
        (Busy { base, oom_kills_before, refused_before, is_nursing, exit: None }, worker)
    }
}

impl Base {
    async fn filled(mut self, furnishing: Furnishing) -> Result<Slot, ExecError> {
        let mut worker = match &self.programs {
            Some(programs) => {
                let gauge = self.group.as_ref().map(Group::gauge);
                programs.spawn(&self.keeper, self.nursery.as_ref(), gauge, furnishing).await?
            }
            None => self.keeper.spawn().await?,
        };
        if let Some(meter) = worker.home.as_mut().and_then(|home| Arc::get_mut(&mut home.meter)) {
            self.at_start_bytes = self.at_start_bytes.min(meter.held_bytes());
            meter.start_at(self.at_start_bytes);
        }
        Ok(Slot { base: self, worker })
    }
}

impl Busy {
    /// Waits for the next event of a guest that is a program. Cancel-safe.
    pub(crate) async fn guest_news(
        &mut self,
        init: &mut Init,
        used: &mut Option<Exit>,
    ) -> io::Result<GuestNews> {
        match &self.base.nursery {
            Some(nursery) if self.is_nursing => {
                let (status, exit) = nursery.ended().await?;
                self.is_nursing = false;
                *used = Some(exit);
                Ok(GuestNews::Ended(status))
            }
            Some(_) => std::future::pending().await,
            None => init.news().await,
        }
    }

    /// Waits until the worker and all its descendants are dead. Cancel-safe up to the first
    /// message.
    pub(crate) async fn gone(&mut self) -> io::Result<Exit> {
        let mut entered = None;
        if let (Some(nursery), true) = (&self.base.nursery, self.is_nursing) {
            entered = Some(nursery.ended().await?.1);
            self.is_nursing = false;
        }
        let exit = loop {
            match self.exit.take() {
                Some(exit) => break exit,
                None => match self.base.keeper.hears().await?.0 {
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
        Ok(entered.map_or(exit, |entered| together(exit, entered)))
    }

    /// Gives the worker's directory a fresh upper layer, see [`Home::renew`].
    pub(crate) async fn renew_overlay(
        &mut self,
        home: &Home,
        generation: u32,
        lower: OwnedFd,
    ) -> Result<(), ExecError> {
        let renewed = home.renew(&self.base.keeper, generation, lower).await;
        renewed.map_err(|problem| {
            if let NotMounted::WorkerEnded(exit) = &problem {
                self.exit = Some(*exit);
            }
            problem.into_error()
        })
    }

    /// True if the kernel's OOM killer killed a process of this slot.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.base.group.as_ref().is_some_and(|group| group.oom_kills() > self.oom_kills_before)
    }

    /// True if the guest tried to start more processes than it may have.
    pub(crate) fn ran_out_of_processes(&self) -> bool {
        let refused = |group: &Group| group.refused_processes() > self.refused_before;
        self.base.group.as_ref().is_some_and(refused)
    }

    /// Returns whether memory and whether processes ran out since the last call.
    pub(crate) fn has_run_out(&mut self) -> (bool, bool) {
        let Some(group) = &self.base.group else { return (false, false) };
        let now = (group.oom_kills(), group.refused_processes());
        let before = (self.oom_kills_before, self.refused_before);
        (self.oom_kills_before, self.refused_before) = now;
        (now.0 > before.0, now.1 > before.1)
    }

    /// Spawns a fresh worker in the same slot. Only after [`Busy::gone`].
    pub(crate) async fn refill(mut self) -> Result<Slot, ExecError> {
        // Fails while the last guest's files are still in memory; the next refill tries again.
        if let (Some(group), true) = (&self.base.group, self.base.has_more) {
            self.base.has_more = group.limit_memory(self.base.wall_bytes).is_err();
        }
        self.base.filled(Furnishing::default()).await
    }
}

/// Adds up the usage of two processes of one guest.
pub(crate) fn together(a: Exit, b: Exit) -> Exit {
    Exit {
        cpu_us: a.cpu_us + b.cpu_us,
        peak_bytes: a.peak_bytes.max(b.peak_bytes),
        code: a.code,
        signal: a.signal,
    }
}

/// Returns the cgroup's memory limit. The guest's files live in memory too, so the disk limit is
/// part of it; the guard bounds the guest's own memory.
fn wall_bytes(limits: Limits, has_files: bool) -> u64 {
    limits.memory_bytes + OVERHEAD_BYTES + if has_files { limits.disk_bytes } else { 0 }
}

async fn group(
    cgroups: Cgroups,
    limits: Limits,
    has_files: bool,
    inside: Vec<i32>,
) -> Result<Group, ExecError> {
    let memory = wall_bytes(limits, has_files);
    let processes = PROCESSES + if has_files { limits.processes } else { 0 };
    blocking(move || {
        let group = cgroups.group(memory, processes)?;
        for pid in inside {
            group.admit(pid)?;
        }
        Ok(group)
    })
    .await
}

impl Keeper {
    async fn spawn(&self) -> Result<Worker, ExecError> {
        let handles = self.ask_for_worker(&ToKeeper::Spawn, &[]).await?;
        let socket = UnixStream::from_std(handles.stream()?)?;
        let roots = handles.process_id().into_iter().collect();
        let handles = Handles::new(handles);
        let mut worker = Worker { socket, handles, home: None, roots };
        timeout(STEP, worker.walls()).await.map_err(|_| timed_out())??;
        Ok(worker)
    }

    /// Asks the keeper for a new worker and returns its handles.
    pub(crate) async fn ask_for_worker(
        &self,
        what: &ToKeeper,
        fds: &[BorrowedFd<'_>],
    ) -> Result<WorkerHandles, ExecError> {
        what.send(&self.0, fds)?;
        match self.says().await? {
            (FromKeeper::Spawned, fds) => Ok(WorkerHandles::new(fds)?),
            (FromKeeper::Broken(broken), _) => Err(ExecError::Sandbox(broken)),
            (
                FromKeeper::Hello
                | FromKeeper::Built { .. }
                | FromKeeper::Mounted { .. }
                | FromKeeper::NotMounted(_)
                | FromKeeper::Exited(_),
                _,
            ) => Err(babble()),
        }
    }

    /// Asks the keeper to mount a directory in the worker. Returns whether it is also mounted at
    /// its real path, and the descriptors in the keeper's reply.
    pub(crate) async fn mount(
        &self,
        request: OverlayRequest,
        fds: [BorrowedFd<'_>; 4],
    ) -> Result<(bool, Vec<OwnedFd>), NotMounted> {
        let path = request.overlay.real_path.clone();
        ToKeeper::Overlay(request).send(&self.0, &fds)?;
        match self.says().await? {
            (FromKeeper::Mounted { is_at_real_path }, fds) => Ok((is_at_real_path, fds)),
            (FromKeeper::NotMounted(broken), _) => Err(not_mounted(&path, &broken).into()),
            (FromKeeper::Exited(exit), _) => Err(NotMounted::WorkerEnded(exit)),
            (
                FromKeeper::Hello
                | FromKeeper::Built { .. }
                | FromKeeper::Broken(_)
                | FromKeeper::Spawned,
                _,
            ) => Err(babble().into()),
        }
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
    /// Reads everything that the worker writes, until it closes its socket.
    pub(crate) async fn said(mut self, text: &mut Vec<u8>) -> io::Result<()> {
        self.socket.read_to_end(text).await.map(drop)
    }

    /// Waits for the worker's report that it is confined. Reads byte by byte, because the bytes
    /// after the report may be the guest's.
    pub(crate) async fn walls(&mut self) -> Result<(), ExecError> {
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
    pub(crate) fn new(handles: WorkerHandles) -> Handles {
        Handles(Arc::new(handles))
    }

    /// Returns a shared handle for another thread that may have to kill the worker.
    pub(crate) fn worker(&self) -> Arc<WorkerHandles> {
        Arc::clone(&self.0)
    }

    pub(crate) fn kill(&self) {
        self.0.kill();
    }

    /// Asks the guest's programs to terminate.
    pub(crate) fn ask_to_end(&self) {
        self.0.ask_to_end();
    }

    /// Asks init to interrupt the guest's first process.
    pub(crate) fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        self.kill();
    }
}

fn not_mounted(path: &Path, broken: &Broken) -> ExecError {
    let (path, step) = (path.display(), &broken.step);
    let error = io::Error::from_raw_os_error(broken.errno);
    ExecError::WorkingDir(format!(
        "{path} cannot be shown to code: {step}: {error}; this needs Linux 6.6 or newer with \
         overlayfs, and a directory in which nothing else is mounted"
    ))
}

pub(crate) fn babble() -> ExecError {
    io::Error::from(io::ErrorKind::InvalidData).into()
}

pub(crate) fn timed_out() -> io::Error {
    io::ErrorKind::TimedOut.into()
}
