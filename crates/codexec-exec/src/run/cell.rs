//! Cells: the pieces of code that a session runs, one at a time.
//!
//! The guest's first process reports the end of a cell over the socket, with the key that came with
//! the cell. No printed text can be mistaken for the report, no other process can send it, and
//! forged reports can only end the guest's own cell.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use codexec_types::{
    Admitted, AskAnswer, CallCode, CallError, Cell, CellEnding, FileChanges, Json, Language, Limit,
    Outcome, OutputStream, RunEvent, Thrown, ThrownCode, ToGuest,
};
use tokio::time::Instant;

use super::directory::WORK;
use super::earlier_output::EarlierOutputs;
use super::idle::{IDLE_CHECK_INTERVAL, LateOutput};
use super::{CHECK_INTERVAL, MAX_QUESTIONS, Run, RunState, SessionEnd, Usage};
use crate::clock::Clock;
use crate::evidence::Evidence;
use crate::files::{self, WorkspaceFiles};
use crate::frames::is_first_child;
use crate::freeze::{Freezer, FrozenProcesses, current_tick};
use crate::output::OutputPipe;
use crate::process_tree::{ProcessStats, list_tree};
use crate::slot::BusySlot;
use crate::{user_dir, zygote};

/// How long a cell may take to stop after it was interrupted.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// The longest part of a guest's path that a message shows.
const PATH_BYTES: usize = 1 << 10;

/// The state of a session besides its current cell.
#[derive(Default)]
pub(super) struct SessionState {
    /// The key of the current or last cell.
    key: String,
    freezer: Freezer,
    /// The tick at which that cell started.
    began: u64,
    /// The processes that the cell started, from the moment it is stopped.
    stopped: Option<StoppedProcesses>,
    pub(super) earlier: EarlierOutputs,
    /// True until the output pipes of the current cell arrive. Until then, the pipes at hand belong
    /// to an earlier cell.
    awaits_streams: bool,
    pub(super) end: Option<SessionEnd>,
    pub(super) late_output: LateOutput,
    /// CPU time that the processes had used when the cell, or the idle period, started.
    pub(super) cpu_before: Duration,
    /// The time of that measurement.
    pub(super) measured_at: Option<Instant>,
    /// Memory that the processes held at that time.
    pub(super) memory_bytes: u64,
    pub(super) roots: ProcessStats,
    /// The workspace's files after the last cell.
    files: WorkspaceFiles,
    /// The directory for artifacts of the last cell.
    pub(super) artifacts: Option<PathBuf>,
    /// Changes of the user's directory since the last reply, which the next reply reports.
    pub(super) between: FileChanges,
}

impl SessionState {
    /// Creates the state of a fresh worker.
    pub(super) fn new(roots: &[i32]) -> SessionState {
        let freezer = Freezer::new(roots);
        let roots = ProcessStats::new(roots);
        SessionState {
            memory_bytes: roots.measure().memory_bytes,
            roots,
            freezer,
            ..SessionState::default()
        }
    }
}

/// The frozen processes of a cell that is being stopped. They are killed afterwards.
struct StoppedProcesses {
    processes: FrozenProcesses,
    main: i32,
    at: Instant,
}

impl SessionState {
    fn kill_stopped(&mut self) {
        if let Some(stopped) = self.stopped.take() {
            stopped.processes.kill_since(self.began, stopped.main);
        }
    }
}

/// Returns the process that the host interrupts itself. For a shell, init does this.
fn find_main_process(language: Language, roots: &[i32]) -> Option<i32> {
    match (language, roots) {
        (Language::Python, [_, guest]) => Some(*guest),
        (Language::Node, [_]) => list_tree(roots).into_iter().find(|pid| is_first_child(*pid)),
        _ => None,
    }
}

/// Describes why a cell did not run: the session's current directory is gone.
fn describe_missing_directory(path: &str) -> String {
    let path = path.get(..path.floor_char_boundary(PATH_BYTES)).unwrap_or_default();
    format!(
        "the session's current directory {path} is gone, so this code was not run; the session \
         is in {WORK} now, its working directory"
    )
}

/// Returns 128 random bits in hex, or an empty key if there is no randomness.
fn generate_key() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_or_else(
        |_| String::new(),
        |()| bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    )
}

impl Run {
    /// Starts a cell in an idle session. [`Run::next`] returns its events; after its
    /// [`RunEvent::Ended`], the session takes the next cell unless [`Run::session_end`] returns a
    /// reason. The caller drops answers to asks of a cell that has ended.
    pub fn send(&mut self, admitted: &Admitted, number: u32) -> Result<(), SessionEnd> {
        debug_assert!(matches!(self.state, RunState::Ended(_)), "one cell at a time");
        self.collect_late_output();
        let now = Instant::now();
        let Some(session) = &mut self.session else { return Err(SessionEnd::Closed) };
        if let Some(end) = session.end {
            return Err(end);
        }
        session.key = generate_key();
        session.began = current_tick();
        let key = session.key.clone();
        let is_old =
            session.measured_at.is_none_or(|measured_at| now > measured_at + CHECK_INTERVAL);
        self.leftovers = session.late_output.take_since_last_reply();
        if is_old {
            self.start_counting();
        }
        self.limits = admitted.limits();
        self.clock = Clock::new(now + self.limits.wall);
        if let Some(memory_guard) = &self.memory_guard {
            memory_guard.set_limit(self.limits.memory_bytes);
        }
        self.next_check = now + CHECK_INTERVAL;
        self.output_bytes_left = self.limits.output_bytes;
        self.tool_calls_left = self.limits.tool_calls;
        self.questions_left = MAX_QUESTIONS;
        self.usage = Usage::default();
        self.limits_met.clear();
        self.is_compiled = self.program.is_some();
        self.state = RunState::Running;
        let cell = Cell {
            number,
            key,
            code: admitted.code().to_owned(),
            input: admitted.input().clone(),
            args: admitted.args().to_vec(),
        };
        match (ToGuest::Cell(cell).encode(), self.make_streams()) {
            (Ok(frame), Ok(streams)) => self.outbox.push_with(frame, streams),
            (Err(_), _) | (_, Err(_)) => self.end_for_bad_frame(),
        }
        Ok(())
    }

    /// Makes new output pipes for the cell and returns their write ends. A shell's init makes its
    /// own.
    ///
    /// THREAT[SES-10]: nothing that was started before the cell can write to its output.
    fn make_streams(&mut self) -> std::io::Result<Vec<OwnedFd>> {
        if self.program.as_ref().is_none_or(|program| program.guest.is_none()) {
            if let Some(session) = &mut self.session {
                session.awaits_streams = self.language == Language::Bash;
            }
            return Ok(Vec::new());
        }
        let [(out, to_out), (err, to_err)] =
            [OutputPipe::with_sender()?, OutputPipe::with_sender()?];
        self.take_streams(out, err);
        Ok(vec![to_out, to_err])
    }

    /// Uses these pipes for the current cell. The previous ones belong to earlier cells.
    pub(super) fn take_streams(&mut self, out: OutputPipe, err: OutputPipe) {
        let (Some(program), Some(session)) = (&mut self.program, &mut self.session) else { return };
        let out = std::mem::replace(&mut program.out, out);
        let err = std::mem::replace(&mut program.err, err);
        session.earlier.push(out, err);
        session.awaits_streams = false;
    }

    /// Handles text from the current output pipes.
    pub(super) fn accept_written(
        &mut self,
        stream: OutputStream,
        text: String,
        bytes: u64,
    ) -> Option<RunEvent> {
        if self.session.as_ref().is_some_and(|session| session.awaits_streams) {
            self.store_late_output(stream, &text);
            return None;
        }
        self.accept_output(stream, text, bytes)
    }

    /// Returns why the session ended, if it has.
    pub fn session_end(&self) -> Option<SessionEnd> {
        self.session.as_ref().and_then(|session| session.end)
    }

    /// Stops the guest with this outcome. A session is asked to stop its cell and continues if the
    /// cell stops; any other guest is killed.
    ///
    /// THREAT[SES-3]: a cell that does not stop in time is killed together with its session.
    pub(super) fn stop(&mut self, outcome: Outcome) {
        match (&self.session, &self.state) {
            (None, _) => self.end(outcome),
            (Some(_), RunState::Running) => {
                if let Ok(frame) = ToGuest::Interrupt.encode() {
                    self.outbox.push(frame);
                }
                // Sent before the signal, which may arrive before the guest has read the cell.
                self.outbox.drain_now();
                // Code that computes does not read its socket, so it gets a signal too.
                if self.stop_processes() {
                    self.state = RunState::Stopping(outcome, Instant::now() + STOP_GRACE);
                } else {
                    self.end(outcome);
                }
            }
            // The guest is already stopping; the first reason is the one that is reported.
            (Some(_), RunState::Stopping(..) | RunState::Dying(..) | RunState::Ended(_)) => {}
        }
    }

    /// THREAT[SES-9]: freezes all processes of the cell before the guest is interrupted, so that no
    /// process goes on because another one ended. A shell's init does the same.
    ///
    /// Returns `false` if the guest would ignore the interrupt, as Python does inside `os.system`.
    fn stop_processes(&mut self) -> bool {
        let Some(program) = &self.program else { return true };
        let (Some(session), Some(main)) =
            (&mut self.session, find_main_process(self.language, &self.roots))
        else {
            program.interrupt(&self.handles);
            return true;
        };
        let processes = session.freezer.stop_all();
        let is_caught = processes.catches_interrupt(main);
        if is_caught {
            processes.interrupt(main);
        }
        let is_python = self.language == Language::Python;
        if is_python && is_caught {
            // The signal is pending: Python handles it before anything else.
            processes.kill_since(session.began, main);
            return true;
        }
        if is_python {
            // Killed while frozen; otherwise it would go on with the next statement.
            processes.kill(main);
        } else {
            // Node's watcher thread stops the code; a Node that is still starting reads its socket.
            processes.resume(main);
        }
        // Processes that cannot be interrupted stay frozen until they are killed.
        session.stopped = Some(StoppedProcesses { processes, main, at: Instant::now() });
        !is_python
    }

    /// Kills the stopped processes after a while, because the guest may be waiting for them.
    pub(super) fn end_stopped_processes(&mut self) {
        let Some(session) = &mut self.session else { return };
        if session.stopped.as_ref().is_some_and(|stopped| stopped.at.elapsed() > STOP_GRACE / 3) {
            session.kill_stopped();
        }
    }

    /// THREAT[SES-1]: only a report with the key of the current cell ends it; others are counted
    /// and ignored.
    pub(super) fn accept_end_of_cell(&mut self, key: &str, ending: CellEnding) {
        let is_this = self.session.as_ref().is_some_and(|session| session.key == key);
        if !is_this {
            match self.questions_left.checked_sub(1) {
                Some(left) => self.questions_left = left,
                None => self.end_for_bad_frame(),
            }
            return;
        }
        self.collect_pending_output();
        if let Some(session) = &mut self.session {
            // Invalidates the key, so that a repeated report has no effect.
            session.key = generate_key();
            session.kill_stopped();
            for (stream, text) in session.earlier.read_available() {
                session.late_output.push(stream, &text);
            }
            self.leftovers.extend(session.late_output.take_meanwhile());
        }
        let outcome = match &self.state {
            RunState::Stopping(outcome, _) => outcome.clone(),
            RunState::Running | RunState::Dying(..) | RunState::Ended(_) => {
                self.judge_ending(ending)
            }
        };
        self.refuse_unanswered();
        self.record_cell_usage();
        let is_full = outcome == Outcome::Stopped(Limit::Memory) && self.program.is_none();
        if is_full {
            // The engine drops promises when it is out of memory, so its state is not usable.
            self.end(outcome);
        } else {
            self.state = RunState::Ended(outcome);
        }
    }

    /// Reads the output that the guest flushed before it reported the end of the cell.
    fn collect_pending_output(&mut self) {
        let event = self.program.as_mut().and_then(|program| program.init.try_take_streams());
        if let Some((out, err)) = event {
            self.take_streams(out, err);
        }
        let Some(program) = &mut self.program else { return };
        let pending = [
            (OutputStream::Out, program.out.read_available()),
            (OutputStream::Err, program.err.read_available()),
        ];
        for (stream, (text, bytes)) in pending {
            if let Some(event) = self.accept_written(stream, text, bytes) {
                self.leftovers.push_back(event);
            }
        }
    }

    fn judge_ending(&self, ending: CellEnding) -> Outcome {
        match ending {
            CellEnding::Returned(value) => Outcome::Returned(value),
            CellEnding::Threw(thrown) if self.program.is_none() => {
                self.current_evidence().judge_cell(thrown)
            }
            CellEnding::Threw(thrown) => {
                let peak_bytes = self.usage.peak_memory_bytes;
                let ran_out_of_memory =
                    self.busy.as_ref().is_some_and(BusySlot::has_run_out_of_memory);
                Evidence { peak_bytes, ran_out_of_memory, ..self.current_evidence() }
                    .judge_thrown_by_program(thrown)
            }
            CellEnding::Exited(0) => Outcome::Returned(Json::null()),
            CellEnding::Exited(code) => Outcome::Exited { code },
            CellEnding::DirectoryGone(path) => Outcome::Threw(Thrown {
                code: ThrownCode::RuntimeError,
                message: describe_missing_directory(&path),
                at: None,
                stack: None,
            }),
            // No interrupt was sent by the host.
            CellEnding::Interrupted => Outcome::Threw(Thrown {
                code: ThrownCode::RuntimeError,
                message: "the code interrupted itself".to_owned(),
                at: None,
                stack: None,
            }),
        }
    }

    fn current_evidence(&self) -> Evidence {
        Evidence {
            language: self.language,
            is_compiled: self.is_compiled,
            exit: None,
            status: None,
            ran_out_of_memory: false,
            peak_bytes: self
                .session
                .as_ref()
                .map_or(0, |session| session.roots.measure().memory_bytes),
            memory_bytes: self.limits.memory_bytes,
        }
    }

    /// Refuses the unanswered asks, which the caller has dropped, so that no guest waits forever.
    fn refuse_unanswered(&mut self) {
        let mut ids: Vec<u32> = self.unanswered.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let message = "the cell that made this call ended before it was answered; await calls \
                           in the cell that makes them";
            let error = CallError::new(CallCode::UpstreamError, message);
            self.answer(AskAnswer { id, result: Err(error) });
        }
    }

    /// Records the usage of the cell. The next cell is counted from here.
    fn record_cell_usage(&mut self) {
        let now = Instant::now();
        self.next_check = now + IDLE_CHECK_INTERVAL;
        if let Some(memory_guard) = &self.memory_guard {
            memory_guard.set_idle();
        }
        self.start_counting();
        if let (Some(program), Some(busy)) = (&self.program, &mut self.busy) {
            let is_full =
                self.user_dir.is_none() && codexec_sandbox::is_filesystem_full(&program.workspace);
            let (memory, processes) = busy.take_exhausted();
            let met =
                [(Limit::Memory, memory), (Limit::Processes, processes), (Limit::Disk, is_full)];
            self.limits_met =
                met.into_iter().filter(|(_, is)| *is).map(|(limit, _)| limit).collect();
        }
    }

    pub(super) async fn cell_changes(&mut self, keep: PathBuf) -> FileChanges {
        let (Some(program), Some(session)) = (&self.program, &mut self.session) else {
            return FileChanges::default();
        };
        // Most cells leave no files, and waking a thread takes as long as running a short cell.
        let is_bare = self.user_dir.is_none() && session.files.is_empty();
        if is_bare && files::is_empty(&program.workspace) {
            return FileChanges::default();
        }
        let Ok(workspace) = program.workspace.try_clone() else { return FileChanges::default() };
        let layers = program.layers.as_ref().and_then(|layers| layers.try_clone().ok());
        let freezer = Freezer::new(&self.roots);
        session.artifacts = Some(keep.clone());
        let (before, user_dir) = (std::mem::take(&mut session.files), self.user_dir.take());
        let look = move || {
            Ok(match (user_dir, layers) {
                (Some(mut dir), Some(layers)) => {
                    // Frozen, so that no file is copied half written.
                    let changes = match freezer.freeze() {
                        Ok(frozen) => {
                            let changes = dir.commit(&layers, &keep);
                            if !frozen.is_still() {
                                tracing::debug!("a session's processes ran during a commit");
                            }
                            changes
                        }
                        Err(error) => user_dir::report_failed_commit(&error),
                    };
                    (changes, before, Some(dir))
                }
                (Some(dir), None) => (FileChanges::default(), before, Some(dir)),
                (None, _) => {
                    let (changes, after) = files::collect(workspace, &before, &keep);
                    (changes, after, None)
                }
            })
        };
        let Ok((mut changes, after, user_dir)) = zygote::run_blocking(look).await else {
            return FileChanges::default();
        };
        session.files = after;
        self.user_dir = user_dir;
        let between = std::mem::take(&mut session.between);
        changes.between_cells = (!between.is_empty()).then(|| Box::new(between));
        changes
    }
}
