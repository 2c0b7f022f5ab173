mod directory;
mod earlier_output;
mod files;
mod interruption;
mod measurement;

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use codexec_types::{Language, Limit, Outcome, OutputStream, Thrown, WorkerJob};
use tokio::time::{Instant, sleep_until};

use self::earlier_output::EarlierOutputs;
use self::interruption::CellProcesses;
use super::{BodyEvent, Observed, PooledWorker};
use crate::PackageMounter;
use crate::evidence::{Claim, Evidence};
use crate::files::WorkspaceFiles;
use crate::frames::FrameSource;
use crate::memory::GuardHandle;
use crate::output::{OutputPipe, read_either};
use crate::process_tree::{ProcessStats, TreeWatch};
use crate::program::{InitEvent, ProgramWorker};
use crate::run::CHECK_INTERVAL;
use crate::user_dir::UserDir;

pub(in crate::run) use self::directory::WORK;

/// A guest that is a program, with all processes that it starts.
pub(in crate::run) struct ProgramsBody {
    pub(super) worker: PooledWorker,
    program: ProgramWorker,
    language: Language,
    /// Kills the guest when it holds too much memory. `None` when the guest is dead.
    guard: Option<GuardHandle>,
    tree: Option<TreeWatch>,
    /// The usage of a session's first processes; empty for a single execution.
    pub(super) stats: ProcessStats,
    next_check: Instant,
    user_dir: Option<UserDir>,
    /// The workspace's files after the last cell.
    files: WorkspaceFiles,
    cell_processes: CellProcesses,
    earlier: EarlierOutputs,
    pipes: CellPipes,
}

/// The cell that the current pipes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellPipes {
    Current,
    /// The pipes belong to an earlier cell, until those of the current cell arrive.
    Awaited,
}

impl ProgramsBody {
    pub(super) fn new(
        worker: PooledWorker,
        mut program: ProgramWorker,
        user_dir: Option<UserDir>,
        job: &WorkerJob,
    ) -> ProgramsBody {
        program.close_unused_stdin();
        let (stats, cell_processes) = match job.is_session {
            true => (ProcessStats::new(&worker.roots), CellProcesses::new(&worker.roots)),
            false => (ProcessStats::default(), CellProcesses::default()),
        };
        let meter = Arc::clone(&program.meter);
        let guard = worker.lease().guard().watch(meter, worker.handles.shared(), job.memory_bytes);
        ProgramsBody {
            worker,
            program,
            language: job.language,
            guard: Some(guard),
            tree: None,
            stats,
            next_check: Instant::now() + CHECK_INTERVAL,
            user_dir,
            files: WorkspaceFiles::new(),
            cell_processes,
            earlier: EarlierOutputs::default(),
            pipes: CellPipes::Current,
        }
    }

    /// Returns the process whose frames are accepted.
    pub(super) fn frame_source(&self, job: &WorkerJob) -> FrameSource {
        match (job.language, self.worker.roots.as_slice()) {
            _ if !job.is_session => FrameSource::AnyProcess,
            (Language::Node, _) => FrameSource::FirstChild,
            // A guest forked by a nursery is the last root; otherwise init sends the frames.
            (_, [.., guest]) if self.program.guest.is_some() => FrameSource::Process(*guest),
            (_, [init, ..]) => FrameSource::Process(*init),
            (_, []) => FrameSource::AnyProcess,
        }
    }

    pub(super) async fn next_event(&mut self) -> BodyEvent {
        loop {
            let Some(busy) = &mut self.worker.busy else { return pending().await };
            let ProgramWorker { out, err, init, used, .. } = &mut self.program;
            let event = tokio::select! {
                (stream, text, bytes) = read_either(out, err) => {
                    return self.pipes.attribute(stream, text, bytes);
                }
                (stream, text) = self.earlier.read_next() => {
                    return BodyEvent::LateOutput(stream, text);
                }
                event = busy.next_guest_event(init, used) => event,
                () = sleep_until(self.next_check) => return BodyEvent::CheckDue,
            };
            match event {
                Ok(InitEvent::Streams(out, err)) => self.take_streams(out, err),
                Ok(InitEvent::Ended(status)) => return BodyEvent::Ended(Some(status)),
                Err(_) => return BodyEvent::Ended(None),
            }
        }
    }

    pub(super) fn begin_cell(&mut self, memory_bytes: u64) -> io::Result<Vec<OwnedFd>> {
        self.cell_processes.begin_cell();
        if let Some(guard) = &self.guard {
            guard.set_limit(memory_bytes);
        }
        self.next_check = Instant::now() + CHECK_INTERVAL;
        self.make_streams()
    }

    /// Makes new output pipes for the cell and returns their write ends. A shell's init makes its
    /// own.
    ///
    /// THREAT[SES-10]: nothing that was started before the cell can write to its output.
    fn make_streams(&mut self) -> io::Result<Vec<OwnedFd>> {
        if self.program.guest.is_none() {
            self.pipes = match self.language {
                Language::Bash => CellPipes::Awaited,
                Language::JavaScript | Language::TypeScript | Language::Python | Language::Node => {
                    CellPipes::Current
                }
            };
            return Ok(Vec::new());
        }
        let [(out, to_out), (err, to_err)] =
            [OutputPipe::with_sender()?, OutputPipe::with_sender()?];
        self.take_streams(out, err);
        Ok(vec![to_out, to_err])
    }

    /// Uses these pipes for the current cell. The previous ones belong to earlier cells.
    fn take_streams(&mut self, out: OutputPipe, err: OutputPipe) {
        let out = std::mem::replace(&mut self.program.out, out);
        let err = std::mem::replace(&mut self.program.err, err);
        self.earlier.push(out, err);
        self.pipes = CellPipes::Current;
    }

    pub(super) fn read_available(&mut self, mut take: impl FnMut(BodyEvent)) {
        for (stream, text) in self.earlier.read_available() {
            take(BodyEvent::LateOutput(stream, text));
        }
        let (text, bytes) = self.program.out.read_available();
        take(self.pipes.attribute(OutputStream::Out, text, bytes));
        let (text, bytes) = self.program.err.read_available();
        take(self.pipes.attribute(OutputStream::Err, text, bytes));
    }

    pub(super) fn read_rest_of_cell(&mut self, take: impl FnMut(BodyEvent)) {
        if let Some((out, err)) = self.program.init.try_take_streams() {
            self.take_streams(out, err);
        }
        self.read_available(take);
    }

    pub(super) async fn read_last_output(&mut self) -> Option<(OutputStream, String, u64)> {
        let ProgramWorker { out, err, .. } = &mut self.program;
        match out.has_ended() && err.has_ended() {
            true => None,
            false => Some(read_either(out, err).await),
        }
    }

    pub(super) fn ask_to_end(&self) {
        self.worker.handles.ask_to_end();
    }

    pub(super) fn judge_end(
        &self,
        claim: Option<Claim>,
        status: Option<i32>,
        observed: &Observed,
    ) -> Outcome {
        if self.guard.as_ref().is_some_and(GuardHandle::was_killed) {
            return Outcome::Stopped(Limit::Memory);
        }
        Evidence { status, ..self.evidence(observed) }.judge_program(claim)
    }

    pub(super) fn judge_thrown(&self, thrown: Thrown, observed: &Observed) -> Outcome {
        self.evidence(observed).judge_thrown_by_program(thrown)
    }

    fn evidence(&self, observed: &Observed) -> Evidence {
        Evidence {
            language: self.language,
            is_compiled: true,
            exit: self.worker.exit(),
            status: None,
            ran_out_of_memory: self.worker.has_run_out_of_memory(),
            peak_bytes: observed.peak_bytes,
            memory_bytes: observed.memory_bytes,
        }
    }

    pub(super) fn vacate(&mut self) {
        self.guard = None;
        self.worker.vacate();
    }

    pub(super) fn package_mounter(&self) -> Option<PackageMounter> {
        let (resources, zygote) = self.worker.resources_and_zygote()?;
        let namespaces = self.program.namespaces()?.ok()?;
        Some(PackageMounter::new(resources, zygote, namespaces))
    }
}

impl CellPipes {
    /// Attributes output to the current cell or to an earlier one.
    fn attribute(self, stream: OutputStream, text: String, bytes: u64) -> BodyEvent {
        match self {
            CellPipes::Current => BodyEvent::Output(stream, text, bytes),
            CellPipes::Awaited => BodyEvent::LateOutput(stream, text),
        }
    }
}
