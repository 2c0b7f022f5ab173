mod cell;
mod death;
mod directory;
mod earlier_output;
mod idle;
mod renewal;
mod session_end;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{Posture, ZygoteLink};
use codexec_types::{
    Ask, AskAnswer, CallCode, CallError, Crash, FileChanges, FromGuest, Json, Language, Limit,
    Limits, Outcome, OutputStream, RunEvent, ToGuest, WorkerJob,
};
use tokio::time::{Instant, sleep_until};

use self::cell::SessionState;
use self::earlier_output::EarlierOutputs;
use crate::clock::Clock;
use crate::evidence::Claim;
use crate::files::WorkspaceFiles;
use crate::frames::{FrameInbox, FrameOutbox, FrameSource, ReceivedFrame};
use crate::memory::GuardHandle;
use crate::output::{OutputPipe, read_either};
use crate::pool::{HostResources, PoolLease};
use crate::process_tree::{TreeUsage, TreeWatch};
use crate::program::{InitEvent, ProgramWorker};
use crate::slot::{BusySlot, KillOnDrop, Slot, Worker};
use crate::user_dir::UserDir;
use crate::{files, zygote};

pub use session_end::SessionEnd;

/// An execution in flight, or a session with one cell at a time. Dropping a run kills the worker
/// and frees its slot: a worker whose end was not observed is never reused.
pub struct Run {
    inbox: FrameInbox,
    outbox: FrameOutbox,
    handles: KillOnDrop,
    busy: Option<BusySlot>,
    program: Option<ProgramWorker>,
    /// Host process ids from which all of the guest's processes descend.
    roots: Vec<i32>,
    user_dir: Option<UserDir>,
    lease: PoolLease,
    posture: Posture,
    language: Language,
    limits: Limits,
    clock: Clock,
    next_check: Instant,
    watch: Option<TreeWatch>,
    /// For programs: kills the guest when it holds too much memory.
    memory_guard: Option<GuardHandle>,
    output_bytes_left: u64,
    tool_calls_left: u32,
    questions_left: u32,
    /// The weight of each unanswered ask.
    unanswered: HashMap<u32, usize>,
    is_compiled: bool,
    /// The guest has closed its end of the socket.
    is_socket_closed: bool,
    claim: Option<Claim>,
    state: RunState,
    /// Events that were still in flight when the guest ended.
    leftovers: VecDeque<RunEvent>,
    limits_met: Vec<Limit>,
    usage: Usage,
    /// For a session: the state that outlives a cell.
    session: Option<SessionState>,
}

enum RunState {
    Running,
    /// Programs were asked to terminate, or a session to stop its cell. At the instant they are
    /// killed.
    Stopping(Outcome, Instant),
    /// The worker was killed or has exited, but is not reaped yet. With the outcome that was
    /// already decided, or the wait status of the guest's first process.
    Dying(Option<Outcome>, Option<i32>),
    /// Nothing runs. A session may still be open and take the next cell.
    Ended(Outcome),
}

/// The resources that an execution used, as measured by the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub tool_calls: u32,
    pub cpu: Duration,
    pub peak_memory_bytes: u64,
}

/// Limit of asks that need no upstream: they are cheap, but not free.
const MAX_QUESTIONS: u32 = 10_000;
/// The guest's socket is not read while this many asks are unanswered.
const MAX_UNANSWERED: usize = 64;
/// Limit of the total weight of unanswered asks. Less than one server's queue holds, so that no
/// single guest can fill that queue.
const MAX_UNANSWERED_BYTES: usize = 4 << 20;
/// Progress messages are cut to this length.
const PROGRESS_BYTES: usize = 4 << 10;
const MAX_OUTBOX_BYTES: usize = 32 << 20;
/// How long programs may take to terminate after they were asked to.
const GRACE: Duration = Duration::from_millis(150);
/// Interval between two measurements of a process tree. Most guests end before the first.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl Run {
    pub(crate) fn new(
        job: WorkerJob,
        limits: Limits,
        slot: Slot,
        user_dir: Option<UserDir>,
        lease: PoolLease,
    ) -> Run {
        let (busy, worker) = slot.occupy();
        let Worker { socket, handles, program, roots } = worker;
        let (reader, writer) = socket.into_split();
        let source = match (&program, job.is_session) {
            (Some(program), true) => find_frame_source(job.language, program, &roots),
            _ => FrameSource::AnyProcess,
        };
        let now = Instant::now();
        let guard = |program: &ProgramWorker| {
            let meter = Arc::clone(&program.meter);
            lease.guard().watch(meter, handles.shared(), limits.memory_bytes)
        };
        let mut run = Run {
            memory_guard: program.as_ref().map(guard),
            inbox: FrameInbox::new(reader, source),
            outbox: FrameOutbox::new(writer),
            handles,
            posture: busy.base.posture.clone(),
            busy: Some(busy),
            is_compiled: program.is_some(),
            program,
            roots,
            user_dir,
            lease,
            language: job.language,
            limits,
            clock: Clock::new(now + limits.wall),
            next_check: now + CHECK_INTERVAL,
            watch: None,
            output_bytes_left: limits.output_bytes,
            tool_calls_left: limits.tool_calls,
            questions_left: MAX_QUESTIONS,
            unanswered: HashMap::new(),
            is_socket_closed: false,
            claim: None,
            state: RunState::Running,
            leftovers: VecDeque::new(),
            limits_met: Vec::new(),
            usage: Usage::default(),
            session: None,
        };
        if job.is_session {
            run.state = RunState::Ended(Outcome::Returned(Json::null()));
            run.session = Some(SessionState::new(&run.roots));
        }
        match ToGuest::Start(job).encode() {
            Ok(frame) => run.outbox.push(frame),
            Err(_) => run.end(Outcome::Crashed(Crash::BadFrame)),
        }
        run
    }

    /// Returns the next event. Cancel-safe, so it can be used in `select!`. Limits are enforced
    /// here, whatever the guest does.
    pub async fn next(&mut self) -> RunEvent {
        loop {
            match &self.state {
                RunState::Running | RunState::Stopping(..) => {
                    if let Some(event) = self.leftovers.pop_front() {
                        return event;
                    }
                    if let Some(event) = self.listen().await {
                        return event;
                    }
                }
                RunState::Dying(..) => self.wait_for_death().await,
                RunState::Ended(outcome) => {
                    let ended = RunEvent::Ended(outcome.clone());
                    return self.leftovers.pop_front().unwrap_or(ended);
                }
            }
        }
    }

    /// Queues the answer to an ask. It is written while [`Run::next`] waits.
    pub fn answer(&mut self, answer: AskAnswer) {
        self.unanswered.remove(&answer.id);
        let id = answer.id;
        let frame = ToGuest::Answer(answer).encode().or_else(|_| {
            let error = CallError::new(CallCode::UpstreamError, "the result is too large");
            ToGuest::Answer(AskAnswer { id, result: Err(error) }).encode()
        });
        if let Ok(frame) = frame {
            self.outbox.push(frame);
        }
    }

    /// Pauses the wall clock until [`Run::resume_clock`], because the guest waits for a human.
    pub fn pause_clock(&mut self) {
        self.clock.pause(Instant::now());
    }

    pub fn resume_clock(&mut self) {
        self.clock.resume(Instant::now());
    }

    /// Kills the guest, or stops the cell of a session. [`Run::next`] then returns the end.
    pub fn cancel(&mut self) {
        if let RunState::Running | RunState::Stopping(..) = self.state {
            self.stop(Outcome::Cancelled);
        }
    }

    /// Kills the guest at once, and with it the session if it is a cell.
    pub fn kill(&mut self) {
        if let RunState::Running | RunState::Stopping(..) = self.state {
            self.end(Outcome::Cancelled);
        }
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns what the guest changed in its directory; only after the end. Files in a temporary
    /// workspace are copied to `keep`, because the workspace is deleted.
    ///
    /// For a session, these are the changes since the last cell.
    pub async fn collect_changes(&mut self, keep: PathBuf) -> FileChanges {
        if self.session.is_some() {
            return self.cell_changes(keep).await;
        }
        // Guests of the built-in engine have no files, so no blocking thread is needed.
        let Some(program) = self.program.take() else { return FileChanges::default() };
        let user_dir = self.user_dir.take();
        let look = move || {
            Ok(match (user_dir, program.layers) {
                (Some(mut dir), Some(layers)) => dir.commit(&layers, &keep),
                (Some(_), None) => FileChanges::default(),
                (None, _) => files::collect(program.workspace, &WorkspaceFiles::new(), &keep).0,
            })
        };
        zygote::run_blocking(look).await.unwrap_or_default()
    }

    /// Returns the limits that the guest reached without being stopped by them; only after the end.
    pub fn reached_limits(&self) -> Vec<Limit> {
        self.limits_met.clone()
    }

    pub fn posture(&self) -> &Posture {
        &self.posture
    }

    /// Returns the parts that made the worker.
    pub(crate) fn resources_and_zygote(&self) -> Option<(Arc<HostResources>, Arc<ZygoteLink>)> {
        let zygote = Arc::clone(&self.busy.as_ref()?.base.zygote);
        Some((Arc::clone(self.lease.resources()), zygote))
    }

    pub(crate) fn program_mut(&mut self) -> Option<&mut ProgramWorker> {
        self.program.as_mut()
    }

    async fn listen(&mut self) -> Option<RunEvent> {
        if self.has_ask_capacity() {
            match self.inbox.take() {
                Ok(Some(received)) => return self.accept_received(received),
                Ok(None) => {}
                Err(_) => {
                    self.end_for_bad_frame();
                    return None;
                }
            }
        }
        let (may_read, has_answers) =
            (self.has_ask_capacity() && !self.is_socket_closed, !self.outbox.is_empty());
        let until = match &self.state {
            RunState::Stopping(_, until) => *until,
            RunState::Running | RunState::Dying(..) | RunState::Ended(_) => self.clock.deadline(),
        };
        let is_program = self.program.is_some();
        tokio::select! {
            // THREAT[RES-1], THREAT[RES-4]: the host owns the deadline and kills the guest.
            () = sleep_until(until) => self.handle_deadline(),
            read = self.inbox.fill(), if may_read => match read {
                Ok(true) if self.inbox.is_flooded() => self.end_for_bad_frame(),
                Ok(true) => {}
                Ok(false) | Err(_) if is_program => self.is_socket_closed = true,
                Ok(false) | Err(_) => self.note_exit(None),
            },
            written = self.outbox.drain(), if has_answers => {
                // A closed socket is noticed by reading, or by the guest's exit.
                if written.is_err() && is_program {
                    self.outbox.clear();
                } else if written.is_err() && !may_read {
                    self.note_exit(None);
                }
            }
            event = next_event(&mut self.busy, &mut self.program), if is_program => match event {
                ProgramEvent::Written(stream, text, bytes) => {
                    return self.accept_written(stream, text, bytes);
                }
                ProgramEvent::Streams(out, err) => self.take_streams(out, err),
                ProgramEvent::Ended(status) => self.note_exit(status),
            },
            (stream, text) = next_late_output(&mut self.session) => {
                self.store_late_output(stream, &text);
            }
            () = sleep_until(self.next_check), if is_program => self.check_limits(),
        }
        None
    }

    /// Records that the guest exited by itself, with the wait status of its first process if known.
    fn note_exit(&mut self, status: Option<i32>) {
        let decided = match &self.state {
            RunState::Stopping(outcome, _) => Some(outcome.clone()),
            RunState::Running | RunState::Dying(..) | RunState::Ended(_) => None,
        };
        self.state = RunState::Dying(decided, status);
    }

    fn has_ask_capacity(&self) -> bool {
        // Asks of a cell that is being stopped are read and dropped, so that its end arrives.
        let is_stopping = self.session.is_some() && matches!(self.state, RunState::Stopping(..));
        is_stopping
            || self.unanswered.len() < MAX_UNANSWERED
                && self.unanswered.values().sum::<usize>() < MAX_UNANSWERED_BYTES
                && self.outbox.waiting_bytes() < MAX_OUTBOX_BYTES
    }

    /// Handles the deadline. Programs are asked to terminate first and get a grace period; the
    /// built-in engine is killed.
    fn handle_deadline(&mut self) {
        match &self.state {
            // Keeps the reason for which the guest was asked to stop.
            RunState::Stopping(outcome, _) => self.end(outcome.clone()),
            RunState::Running | RunState::Dying(..) | RunState::Ended(_)
                if self.session.is_some() =>
            {
                self.stop(Outcome::Stopped(Limit::Wall));
            }
            RunState::Running | RunState::Dying(..) | RunState::Ended(_)
                if self.program.is_none() =>
            {
                self.end(Outcome::Stopped(Limit::Wall));
            }
            RunState::Running | RunState::Dying(..) | RunState::Ended(_) => {
                self.handles.ask_to_end();
                let until = Instant::now() + GRACE;
                self.state = RunState::Stopping(Outcome::Stopped(Limit::Wall), until);
            }
        }
    }

    /// THREAT[RES-2]: limits apply to the process tree as a whole.
    fn check_limits(&mut self) {
        self.next_check = Instant::now() + CHECK_INTERVAL;
        self.end_stopped_processes();
        self.measure();
        if self.usage.cpu > self.limits.cpu {
            self.stop(Outcome::Stopped(Limit::Cpu));
        }
    }

    /// Measures a program's whole process tree. The kernel does not report the usage of a killed
    /// tree.
    fn measure(&mut self) -> TreeUsage {
        let (Some(program), Some(_)) = (&self.program, &self.busy) else {
            return TreeUsage::default();
        };
        let watch = self.watch.get_or_insert_with(|| TreeWatch::new(self.roots.clone()));
        let used = watch.measure(&program.meter);
        let before = self.session.as_ref().map_or(Duration::ZERO, |session| session.cpu_before);
        self.usage.cpu = self.usage.cpu.max(used.cpu.saturating_sub(before));
        self.usage.peak_memory_bytes = self.usage.peak_memory_bytes.max(used.memory_bytes);
        used
    }

    fn accept_output(
        &mut self,
        stream: OutputStream,
        text: String,
        bytes: u64,
    ) -> Option<RunEvent> {
        match self.output_bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.output_bytes_left = left;
                (!text.is_empty()).then_some(RunEvent::Output { stream, text })
            }
            // THREAT[RES-3]
            None => {
                self.output_bytes_left = 0;
                self.stop(Outcome::Stopped(Limit::Output));
                None
            }
        }
    }

    fn accept_received(&mut self, received: ReceivedFrame) -> Option<RunEvent> {
        match received {
            ReceivedFrame::Frame(frame) => self.accept(frame),
            ReceivedFrame::Ask(FromGuest::Ask { id, ask }, weight) => {
                self.accept_ask(id, ask, weight)
            }
            ReceivedFrame::Ask(frame, _) => self.accept(frame),
            ReceivedFrame::Refused(id, error) => {
                match self.questions_left.checked_sub(1) {
                    Some(_) if self.unanswered.contains_key(&id) => self.end_for_bad_frame(),
                    Some(left) => {
                        self.questions_left = left;
                        self.refuse(id, error);
                    }
                    None => self.stop(Outcome::Stopped(Limit::ToolCalls)),
                }
                None
            }
        }
    }

    /// THREAT[ORD-5]: progress messages count as output.
    fn accept_progress(&mut self, mut text: String) -> Option<RunEvent> {
        let left = self.output_bytes_left.checked_sub(text.len() as u64);
        let (Some(bytes), Some(questions)) = (left, self.questions_left.checked_sub(1)) else {
            self.stop(Outcome::Stopped(Limit::Output));
            return None;
        };
        (self.output_bytes_left, self.questions_left) = (bytes, questions);
        text.truncate(text.floor_char_boundary(PROGRESS_BYTES));
        text.shrink_to_fit();
        Some(RunEvent::Progress(text))
    }

    /// Handles a frame, using only the host's own counters.
    fn accept(&mut self, frame: FromGuest) -> Option<RunEvent> {
        match frame {
            FromGuest::Compiled => self.is_compiled = true,
            // THREAT[SES-10]: programs write to pipes. Output in a frame is what the guest
            // attributes to an earlier cell.
            FromGuest::Output { stream, text }
                if self.session.is_some() && self.program.is_some() =>
            {
                self.store_late_output(stream, &text);
            }
            FromGuest::Output { stream, text } => {
                let bytes = text.len() as u64;
                return self.accept_output(stream, text, bytes);
            }
            FromGuest::Progress(text) => return self.accept_progress(text),
            FromGuest::Image(image) => match self.questions_left.checked_sub(1) {
                Some(left) => {
                    self.questions_left = left;
                    return Some(RunEvent::Image(image));
                }
                None => self.stop(Outcome::Stopped(Limit::Output)),
            },
            // Handled with its weight in `accept_ask`.
            FromGuest::Ask { .. } => {}
            FromGuest::CellEnded { key, ending } if self.session.is_some() => {
                self.accept_end_of_cell(&key, ending);
            }
            // Sessions end their cells with `CellEnded`; other guests end with `Returned` or
            // `Threw`.
            FromGuest::Returned(_) | FromGuest::Threw(_) if self.session.is_some() => {
                self.end_for_bad_frame()
            }
            FromGuest::CellEnded { .. } => self.end_for_bad_frame(),
            FromGuest::Returned(value) => self.accept_claim(Claim::Returned(value)),
            FromGuest::Threw(thrown) => self.accept_claim(Claim::Threw(thrown)),
        }
        None
    }

    /// THREAT[BRG-1]: an invalid frame ends this guest and nothing else.
    fn end_for_bad_frame(&mut self) {
        self.end(Outcome::Crashed(Crash::BadFrame));
    }

    /// Records how the guest says it ended. The built-in engine is done then; a program has yet to
    /// exit.
    fn accept_claim(&mut self, claim: Claim) {
        self.claim = Some(claim);
        if self.program.is_none() {
            self.handles.kill();
            self.state = RunState::Dying(None, None);
        }
    }

    fn refuse(&mut self, id: u32, error: CallError) {
        if let Ok(frame) = (ToGuest::Answer(AskAnswer { id, result: Err(error) })).encode() {
            self.outbox.push(frame);
        }
    }

    fn accept_ask(&mut self, id: u32, ask: Ask, weight: usize) -> Option<RunEvent> {
        let left =
            if ask.is_tool_call() { &mut self.tool_calls_left } else { &mut self.questions_left };
        let Some(fewer) = left.checked_sub(1) else {
            self.stop(Outcome::Stopped(Limit::ToolCalls));
            return None;
        };
        *left = fewer;
        if self.session.is_some() && matches!(self.state, RunState::Stopping(..)) {
            return None;
        }
        if ask.is_tool_call() {
            self.usage.tool_calls += 1;
        }
        if self.unanswered.insert(id, weight).is_some() {
            self.end_for_bad_frame();
            return None;
        }
        Some(RunEvent::Ask { id, ask })
    }

    fn end(&mut self, outcome: Outcome) {
        self.measure();
        self.handles.kill();
        self.state = RunState::Dying(Some(outcome), None);
    }
}

/// An event of a program that did not come as a frame.
enum ProgramEvent {
    Written(OutputStream, String, u64),
    /// The output pipes of the cell that starts.
    Streams(OutputPipe, OutputPipe),
    /// The wait status of the program's first process, if known.
    Ended(Option<i32>),
}

async fn next_event(
    busy: &mut Option<BusySlot>,
    program: &mut Option<ProgramWorker>,
) -> ProgramEvent {
    let (Some(busy), Some(program)) = (busy, program) else { return std::future::pending().await };
    let ProgramWorker { out, err, init, used, .. } = program;
    tokio::select! {
        (stream, text, bytes) = read_either(out, err) => ProgramEvent::Written(stream, text, bytes),
        event = busy.next_guest_event(init, used) => match event {
            Ok(InitEvent::Streams(out, err)) => ProgramEvent::Streams(out, err),
            Ok(InitEvent::Ended(status)) => ProgramEvent::Ended(Some(status)),
            Err(_) => ProgramEvent::Ended(None),
        },
    }
}

/// Reads the next output of earlier cells.
async fn next_late_output(session: &mut Option<SessionState>) -> (OutputStream, String) {
    match session.as_mut().map(|session| &mut session.earlier) {
        Some(earlier) => EarlierOutputs::read_next(earlier).await,
        None => std::future::pending().await,
    }
}

/// Returns the process of a session whose frames are accepted.
fn find_frame_source(language: Language, program: &ProgramWorker, roots: &[i32]) -> FrameSource {
    match (language, roots) {
        (Language::Node, _) => FrameSource::FirstChild,
        // A guest forked by a nursery is the last root; otherwise init sends the frames.
        (_, [.., guest]) if program.guest.is_some() => FrameSource::Process(*guest),
        (_, [init, ..]) => FrameSource::Process(*init),
        (_, []) => FrameSource::AnyProcess,
    }
}
