//! The body of a guest: our engine, or programs.

mod cells;
mod engine;
mod pooled_worker;
mod programs;

use std::path::PathBuf;
use std::time::Duration;

use codexec_sandbox::Posture;
use codexec_types::{FileChanges, Limit, Outcome, OutputStream, WorkerJob};

use self::engine::EngineBody;
use self::pooled_worker::PooledWorker;
use self::programs::ProgramsBody;
use crate::PackageMounter;
use crate::evidence::Claim;
use crate::frames::{FrameInbox, FrameOutbox, FrameSource};
use crate::pool::PoolLease;
use crate::process_tree::TreeUsage;
use crate::slot::{Slot, Worker};
use crate::user_dir::UserDir;

pub(super) use self::programs::WORK;

/// The body of a guest: the processes that it runs in, with their output, usage and files.
///
/// The conversation with the guest and the session around it are the same for all bodies. A new
/// body, such as a container or a worker on another machine, is one more variant, and provides:
///
/// - **Frames**: a [`WaitingBody`] with a socket for frames in both directions. For a session, only
///   bytes of the process that runs the cells count ([`FrameSource`]).
/// - **Output and end**: [`Body::next_event`], and the rest after the death of the guest. Output of
///   each cell is told apart from output of earlier cells.
/// - **Stopping**: [`Body::kill`] always works and leaves nothing behind; [`Body::ask_to_end`] and
///   [`Body::interrupt`] may be refused. Dropping a body kills the guest.
/// - **Usage**: measured by the host, never reported by the guest; and the limits that apply to all
///   processes of the guest together.
/// - **Judgement**: the outcome, from the guest's claim and from what the host observed.
/// - **Files**: the guest's changes, collected or committed by the host, and a current view of the
///   user's directory before each cell. A body without files reports no changes.
/// - **Posture**: which layers of the sandbox are in force.
///
/// All waits are cancel-safe, because [`Run::next`](super::Run::next) is.
#[expect(
    clippy::large_enum_variant,
    reason = "a body is moved once, and a box would be one more allocation for each execution"
)]
pub(super) enum Body {
    /// The built-in engine, in a worker. Guests have no files and no processes of their own.
    Engine(EngineBody),
    /// Programs (Python, Bash, Node) in a worker, below an init.
    Programs(ProgramsBody),
}

/// A body that waits for its job, and the two directions of its socket.
pub(crate) struct WaitingBody {
    pub(super) body: Body,
    pub(super) inbox: FrameInbox,
    pub(super) outbox: FrameOutbox,
}

/// An event of a body, which did not come as a frame.
pub(super) enum BodyEvent {
    /// Output of the execution or of the current cell, and its length in bytes.
    Output(OutputStream, String, u64),
    /// Output of something that an earlier cell left running.
    LateOutput(OutputStream, String),
    /// The guest's usage has to be measured, see [`Body::check`].
    CheckDue,
    /// The guest has ended, with the wait status of its first process if known.
    Ended(Option<i32>),
}

/// The sign by which the host knows that a guest has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndSign {
    /// The guest has reported its result, or has closed its socket.
    Frames,
    /// The guest's first process has exited: [`BodyEvent::Ended`].
    Exit,
}

/// The way that a guest's output takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputPath {
    Frames,
    /// Pipes, see [`BodyEvent::Output`].
    Pipes,
}

/// The result of interrupting a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    Sent,
    /// The guest would ignore the interrupt.
    Ignored,
}

/// The usage of a dead guest.
#[derive(Default)]
pub(super) struct FinalUsage {
    pub(super) used: TreeUsage,
    /// The kernel's count of the peak memory, which replaces all measurements.
    pub(super) peak_bytes: Option<u64>,
}

/// The host's knowledge of a guest, besides what its body observed.
pub(super) struct Observed {
    pub(super) peak_bytes: u64,
    /// The memory limit.
    pub(super) memory_bytes: u64,
}

impl WaitingBody {
    /// Occupies a slot of a pool.
    pub(crate) fn in_slot(
        slot: Slot,
        user_dir: Option<UserDir>,
        lease: PoolLease,
        job: &WorkerJob,
    ) -> WaitingBody {
        let (busy, worker) = slot.occupy();
        let Worker { socket, handles, program, roots } = worker;
        let (reader, writer) = socket.into_split();
        let worker = PooledWorker::new(handles, busy, lease, roots);
        let (body, source) = match program {
            None => (Body::Engine(EngineBody::new(worker, job)), FrameSource::AnyProcess),
            Some(program) => {
                let body = ProgramsBody::new(worker, program, user_dir, job);
                let source = body.frame_source(job);
                (Body::Programs(body), source)
            }
        };
        let (inbox, outbox) = (FrameInbox::new(reader, source), FrameOutbox::new(writer));
        WaitingBody { body, inbox, outbox }
    }
}

impl Body {
    /// Waits for the next event. Cancel-safe.
    pub(super) async fn next_event(&mut self) -> BodyEvent {
        match self {
            Body::Engine(_) => std::future::pending().await,
            Body::Programs(body) => body.next_event().await,
        }
    }

    pub(super) fn end_sign(&self) -> EndSign {
        match self {
            Body::Engine(_) => EndSign::Frames,
            Body::Programs(_) => EndSign::Exit,
        }
    }

    pub(super) fn output_path(&self) -> OutputPath {
        match self {
            Body::Engine(_) => OutputPath::Frames,
            Body::Programs(_) => OutputPath::Pipes,
        }
    }

    /// Records that the guest's code was parsed.
    pub(super) fn note_compiled(&mut self) {
        match self {
            Body::Engine(body) => body.note_compiled(),
            Body::Programs(_) => {}
        }
    }

    /// Asks the guest to terminate. Returns false if it can only be killed.
    pub(super) fn ask_to_end(&self) -> bool {
        match self {
            Body::Engine(_) => false,
            Body::Programs(body) => {
                body.ask_to_end();
                true
            }
        }
    }

    pub(super) fn kill(&self) {
        match self {
            Body::Engine(EngineBody { worker, .. })
            | Body::Programs(ProgramsBody { worker, .. }) => worker.kill(),
        }
    }

    /// Measures the guest, and sets the time of the next check.
    pub(super) fn check(&mut self, next: Duration) -> TreeUsage {
        match self {
            Body::Engine(_) => TreeUsage::default(),
            Body::Programs(body) => body.check(next),
        }
    }

    /// Measures the guest, as far as the kernel will not report its usage after its end.
    pub(super) fn measure(&mut self) -> TreeUsage {
        match self {
            Body::Engine(_) => TreeUsage::default(),
            Body::Programs(body) => body.measure(),
        }
    }

    /// Kills the guest and waits until nothing of it is left. Cancel-safe.
    pub(super) async fn wait_for_exit(&mut self) {
        match self {
            Body::Engine(EngineBody { worker, .. })
            | Body::Programs(ProgramsBody { worker, .. }) => worker.wait_for_exit().await,
        }
    }

    /// Returns output that a dead guest has left. `None` when there is no more. Cancel-safe.
    pub(super) async fn read_last_output(&mut self) -> Option<(OutputStream, String, u64)> {
        match self {
            Body::Engine(_) => None,
            Body::Programs(body) => body.read_last_output().await,
        }
    }

    pub(super) fn final_usage(&mut self) -> FinalUsage {
        match self {
            Body::Engine(body) => body.final_usage(),
            Body::Programs(body) => body.final_usage(),
        }
    }

    /// Returns the limits that a dead guest has reached without being stopped by them.
    pub(super) fn reached_limits(&self) -> Vec<Limit> {
        match self {
            Body::Engine(_) => Vec::new(),
            Body::Programs(body) => body.reached_limits(),
        }
    }

    /// Decides the outcome of a dead guest, given its claim and its wait status.
    pub(super) fn judge_end(
        &self,
        claim: Option<Claim>,
        status: Option<i32>,
        observed: &Observed,
    ) -> Outcome {
        match self {
            Body::Engine(body) => body.judge_end(claim, observed),
            Body::Programs(body) => body.judge_end(claim, status, observed),
        }
    }

    /// Leaves the place that a dead guest has occupied, so that it can be used again.
    pub(super) fn vacate(&mut self) {
        match self {
            Body::Engine(body) => body.worker.vacate(),
            Body::Programs(body) => body.vacate(),
        }
    }

    /// True until [`Body::vacate`].
    pub(super) fn is_occupied(&self) -> bool {
        match self {
            Body::Engine(EngineBody { worker, .. })
            | Body::Programs(ProgramsBody { worker, .. }) => worker.is_occupied(),
        }
    }

    /// Returns the host process id of the guest's first process, or of its closest known ancestor.
    pub(super) fn pid(&self) -> Option<i32> {
        match self {
            Body::Engine(EngineBody { worker, .. })
            | Body::Programs(ProgramsBody { worker, .. }) => worker.pid(),
        }
    }

    pub(super) fn posture(&self) -> &Posture {
        match self {
            Body::Engine(EngineBody { worker, .. })
            | Body::Programs(ProgramsBody { worker, .. }) => worker.posture(),
        }
    }

    /// Returns the guest's changes of files since the last call, and copies new files to `keep`.
    pub(super) async fn collect_changes(&mut self, keep: PathBuf) -> FileChanges {
        match self {
            Body::Engine(_) => FileChanges::default(),
            Body::Programs(body) => body.collect_changes(keep).await,
        }
    }

    /// Returns a handle to mount packages, if the guest can have any.
    pub(super) fn package_mounter(&self) -> Option<PackageMounter> {
        match self {
            Body::Engine(_) => None,
            Body::Programs(body) => body.package_mounter(),
        }
    }
}
