//! Cells: what is sent to a worker that is kept, one at a time.
//!
//! The guest's first process says that a cell has ended, over the socket and with the key that
//! came with the cell: nothing that code prints can be mistaken for it, no other process can say
//! it, and what code could forge ends its own cell, of its own session, and no other.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use codexec_types::{
    Admitted, Answer, CallCode, CallError, Cell, CellEnding, Changes, Event, Json, Language, Limit,
    Outcome, Stream, Thrown, ThrownCode, ToGuest,
};
use tokio::time::Instant;

use super::directory::WORK;
use super::earlier::Earlier;
use super::idle::{IDLE_LOOK, Late};
use super::{LOOK, MAX_QUESTIONS, Over, Run, State, Usage};
use crate::clock::Clock;
use crate::files::{self, WorkspaceFiles};
use crate::freeze::{Freezer, Frozen, tick_now};
use crate::judge::Evidence;
use crate::output::Output;
use crate::slot::Busy;
use crate::watch::{Roots, tree};
use crate::wire::is_first_child;
use crate::{user_dir, zygote};

/// How long a cell that was told to stop may take for it.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// How much is told of a guest's path.
const PATH_BYTES: usize = 1 << 10;

/// What a session has beside the cell that runs.
#[derive(Default)]
pub(super) struct Kept {
    /// Of the cell that runs, or ran last.
    key: String,
    freezer: Freezer,
    /// When that cell began.
    began: u64,
    /// What it has started, from when it was told to stop.
    stopped: Option<Stopped>,
    pub(super) earlier: Earlier,
    /// Whether the output of the cell that runs is still on its way to us: until then, what we
    /// have is an earlier cell's.
    awaits_streams: bool,
    pub(super) over: Option<Over>,
    pub(super) late: Late,
    /// What its processes had used when the cell, or the time without one, began.
    pub(super) cpu_before: Duration,
    /// When that was looked at.
    pub(super) looked: Option<Instant>,
    /// And what they held.
    pub(super) memory_bytes: u64,
    pub(super) roots: Roots,
    /// Its workspace after the last cell.
    files: WorkspaceFiles,
    /// Where the last cell's files are kept.
    pub(super) artifacts: Option<PathBuf>,
    /// What was written to the user's directory since the last reply.
    pub(super) between: Changes,
}

impl Kept {
    /// Of a worker that has done nothing yet.
    pub(super) fn new(roots: &[i32]) -> Kept {
        let freezer = Freezer::new(roots);
        let roots = Roots::new(roots);
        Kept { memory_bytes: roots.used().memory_bytes, roots, freezer, ..Kept::default() }
    }
}

/// The processes of a cell that was told to stop. They stand still, and are then killed.
struct Stopped {
    processes: Frozen,
    main: i32,
    at: Instant,
}

impl Kept {
    fn kill_stopped(&mut self) {
        if let Some(stopped) = self.stopped.take() {
            stopped.processes.kill_since(self.began, stopped.main);
        }
    }
}

/// The process of a session that is to be interrupted by us; a shell is by its init.
fn main_process(language: Language, roots: &[i32]) -> Option<i32> {
    match (language, roots) {
        (Language::Python, [_, guest]) => Some(*guest),
        (Language::Node, [_]) => tree(roots).into_iter().find(|pid| is_first_child(*pid)),
        _ => None,
    }
}

/// What is told of a cell that was not run, as the directory it would have run in is gone.
fn directory_gone(path: &str) -> String {
    let path = path.get(..path.floor_char_boundary(PATH_BYTES)).unwrap_or_default();
    format!(
        "the session's current directory {path} is gone, so this code was not run; the session \
         is in {WORK} now, its working directory"
    )
}

/// 128 random bits. Without randomness nothing is sent.
fn fresh_key() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_or_else(
        |_| String::new(),
        |()| bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    )
}

impl Run {
    /// Starts a cell in a session in which none runs. [`Run::next`] gives its events; after its
    /// [`Event::Ended`] either [`Run::is_over`] or the next may come. Answers to asks of a cell
    /// that has ended are to be dropped.
    pub fn send(&mut self, admitted: &Admitted, number: u32) -> Result<(), Over> {
        debug_assert!(matches!(self.state, State::Ended(_)), "one cell at a time");
        self.hear_late_output();
        let now = Instant::now();
        let Some(kept) = &mut self.kept else { return Err(Over::Closed) };
        if let Some(over) = kept.over {
            return Err(over);
        }
        kept.key = fresh_key();
        kept.began = tick_now();
        let key = kept.key.clone();
        let is_old = kept.looked.is_none_or(|looked| now > looked + LOOK);
        self.leftovers = kept.late.take();
        if is_old {
            self.start_counting();
        }
        self.limits = admitted.limits();
        self.clock = Clock::new(now + self.limits.wall);
        if let Some(guarded) = &self.guarded {
            guarded.limit_to(self.limits.memory_bytes);
        }
        self.next_look = now + LOOK;
        self.output_bytes_left = self.limits.output_bytes;
        self.tool_calls_left = self.limits.tool_calls;
        self.questions_left = MAX_QUESTIONS;
        self.usage = Usage::default();
        self.limits_met.clear();
        self.is_compiled = self.home.is_some();
        self.state = State::Running;
        let cell = Cell {
            number,
            key,
            code: admitted.code().to_owned(),
            input: admitted.input().clone(),
            args: admitted.args().to_vec(),
        };
        match (ToGuest::Cell(cell).encode(), self.fresh_streams()) {
            (Ok(frame), Ok(streams)) => self.outbox.push_with(frame, streams),
            (Err(_), _) | (_, Err(_)) => self.babbled(),
        }
        Ok(())
    }

    /// THREAT[SES-10]: what writes to the cell's output was not there before it. A guest that
    /// entered gets the ends to write to beside the cell; a shell's init makes its own.
    fn fresh_streams(&mut self) -> std::io::Result<Vec<OwnedFd>> {
        if self.home.as_ref().is_none_or(|home| home.guest.is_none()) {
            if let Some(kept) = &mut self.kept {
                kept.awaits_streams = self.language == Language::Bash;
            }
            return Ok(Vec::new());
        }
        let [(out, to_out), (err, to_err)] = [Output::with_sender()?, Output::with_sender()?];
        self.take_streams(out, err);
        Ok(vec![to_out, to_err])
    }

    /// These are the output of the cell that runs; those before them, of earlier ones.
    pub(super) fn take_streams(&mut self, out: Output, err: Output) {
        let (Some(home), Some(kept)) = (&mut self.home, &mut self.kept) else { return };
        let out = std::mem::replace(&mut home.out, out);
        let err = std::mem::replace(&mut home.err, err);
        kept.earlier.push(out, err);
        kept.awaits_streams = false;
    }

    /// Something was written to the output that we have.
    pub(super) fn accept_written(
        &mut self,
        stream: Stream,
        text: String,
        bytes: u64,
    ) -> Option<Event> {
        if self.kept.as_ref().is_some_and(|kept| kept.awaits_streams) {
            self.keep_late(stream, &text);
            return None;
        }
        self.accept_output(stream, text, bytes)
    }

    /// Why the worker of a session is gone, if it is.
    pub fn is_over(&self) -> Option<Over> {
        self.kept.as_ref().and_then(|kept| kept.over)
    }

    /// What runs is to end for this reason. A session is asked to stop its cell and goes on if it
    /// does; anything else is killed.
    ///
    /// THREAT[SES-3]: a cell that does not stop when it is told to takes its session with it.
    pub(super) fn stop(&mut self, outcome: Outcome) {
        match (&self.kept, &self.state) {
            (None, _) => self.end(outcome),
            (Some(_), State::Running) => {
                if let Ok(frame) = ToGuest::Interrupt.encode() {
                    self.outbox.push(frame);
                }
                // Before the signal, which may be there before the cell itself has been read.
                self.outbox.drain_now();
                // Code that computes does not read its socket.
                if self.stop_processes() {
                    self.state = State::Asked(outcome, Instant::now() + STOP_GRACE);
                } else {
                    self.end(outcome);
                }
            }
            // It was asked before, and the first reason is the one that is told.
            (Some(_), State::Asked(..) | State::Dying(..) | State::Ended(_)) => {}
        }
    }

    /// THREAT[SES-9]: what the cell has started stands still before the guest is interrupted, so
    /// nothing goes on by itself because something else has ended. A shell's init does the same.
    ///
    /// `false` if the guest would go on as if nothing had been, as Python does in the middle of
    /// `os.system`.
    fn stop_processes(&mut self) -> bool {
        let Some(home) = &self.home else { return true };
        let (Some(kept), Some(main)) = (&mut self.kept, main_process(self.language, &self.roots))
        else {
            home.interrupt(&self.handles);
            return true;
        };
        let processes = kept.freezer.stop_all();
        let is_caught = processes.catches_interrupt(main);
        if is_caught {
            processes.interrupt(main);
        }
        let is_python = self.language == Language::Python;
        if is_python && is_caught {
            // It is interrupted before it does anything else.
            processes.kill_since(kept.began, main);
            return true;
        }
        if is_python {
            // While it stands still: it would go on with what follows.
            processes.kill(main);
        } else {
            // Node ends what runs from another thread; one that is not up yet reads its socket.
            processes.resume(main);
        }
        // What cannot be interrupted stands still until it is killed.
        kept.stopped = Some(Stopped { processes, main, at: Instant::now() });
        !is_python
    }

    /// A guest may wait for what was stopped; by now it is on its way to its end itself.
    pub(super) fn end_stopped_processes(&mut self) {
        let Some(kept) = &mut self.kept else { return };
        if kept.stopped.as_ref().is_some_and(|stopped| stopped.at.elapsed() > STOP_GRACE / 3) {
            kept.kill_stopped();
        }
    }

    /// THREAT[SES-1]: only the end of the cell that runs is one; any other is a word too many.
    pub(super) fn accept_end_of_cell(&mut self, key: &str, ending: CellEnding) {
        let is_this = self.kept.as_ref().is_some_and(|kept| kept.key == key);
        if !is_this {
            match self.questions_left.checked_sub(1) {
                Some(left) => self.questions_left = left,
                None => self.babbled(),
            }
            return;
        }
        self.hear_waiting_output();
        if let Some(kept) = &mut self.kept {
            // Whoever guesses an end that was is late.
            kept.key = fresh_key();
            kept.kill_stopped();
            for (stream, text) in kept.earlier.read_waiting() {
                kept.late.push(stream, &text);
            }
            self.leftovers.extend(kept.late.take_meanwhile());
        }
        let outcome = match &self.state {
            State::Asked(outcome, _) => outcome.clone(),
            State::Running | State::Dying(..) | State::Ended(_) => self.meaning(ending),
        };
        self.refuse_unanswered();
        self.count_cell();
        let is_full = outcome == Outcome::Stopped(Limit::Memory) && self.home.is_none();
        if is_full {
            // Our engine loses promises when it has no memory: what is left of it is not whole.
            self.end(outcome);
        } else {
            self.state = State::Ended(outcome);
        }
    }

    /// What the guest flushed before it said that the cell had ended.
    fn hear_waiting_output(&mut self) {
        let news = self.home.as_mut().and_then(|home| home.init.waiting_streams());
        if let Some((out, err)) = news {
            self.take_streams(out, err);
        }
        let Some(home) = &mut self.home else { return };
        let heard =
            [(Stream::Out, home.out.read_waiting()), (Stream::Err, home.err.read_waiting())];
        for (stream, (text, bytes)) in heard {
            if let Some(event) = self.accept_written(stream, text, bytes) {
                self.leftovers.push_back(event);
            }
        }
    }

    fn meaning(&self, ending: CellEnding) -> Outcome {
        match ending {
            CellEnding::Returned(value) => Outcome::Returned(value),
            CellEnding::Threw(thrown) if self.home.is_none() => self.evidence().of_cell(thrown),
            CellEnding::Threw(thrown) => {
                let peak_bytes = self.usage.peak_memory_bytes;
                let ran_out_of_memory = self.busy.as_ref().is_some_and(Busy::ran_out_of_memory);
                Evidence { peak_bytes, ran_out_of_memory, ..self.evidence() }
                    .thrown_by_program(thrown)
            }
            CellEnding::Exited(0) => Outcome::Returned(Json::null()),
            CellEnding::Exited(code) => Outcome::Exited { code },
            CellEnding::DirectoryGone(path) => Outcome::Threw(Thrown {
                code: ThrownCode::RuntimeError,
                message: directory_gone(&path),
                at: None,
                stack: None,
            }),
            // Nobody told it to.
            CellEnding::Interrupted => Outcome::Threw(Thrown {
                code: ThrownCode::RuntimeError,
                message: "the code interrupted itself".to_owned(),
                at: None,
                stack: None,
            }),
        }
    }

    fn evidence(&self) -> Evidence {
        Evidence {
            language: self.language,
            is_compiled: self.is_compiled,
            exit: None,
            status: None,
            ran_out_of_memory: false,
            peak_bytes: self.kept.as_ref().map_or(0, |kept| kept.roots.used().memory_bytes),
            memory_bytes: self.limits.memory_bytes,
        }
    }

    /// Whoever still waits for an answer must not wait for ever: the driver has dropped it.
    fn refuse_unanswered(&mut self) {
        let mut ids: Vec<u32> = self.unanswered.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let message = "the cell that made this call ended before it was answered; await calls \
                           in the cell that makes them";
            let error = CallError::new(CallCode::UpstreamError, message);
            self.answer(Answer { id, result: Err(error) });
        }
    }

    /// What the cell has used. The next one is counted from here.
    fn count_cell(&mut self) {
        let now = Instant::now();
        self.next_look = now + IDLE_LOOK;
        if let Some(guarded) = &self.guarded {
            guarded.rest();
        }
        self.start_counting();
        if let (Some(home), Some(busy)) = (&self.home, &mut self.busy) {
            let is_full = self.user_dir.is_none() && codexec_sandbox::is_full(&home.workspace);
            let (memory, processes) = busy.has_run_out();
            let met =
                [(Limit::Memory, memory), (Limit::Processes, processes), (Limit::Disk, is_full)];
            self.limits_met =
                met.into_iter().filter(|(_, is)| *is).map(|(limit, _)| limit).collect();
        }
    }

    pub(super) async fn cell_changes(&mut self, keep: PathBuf) -> Changes {
        let (Some(home), Some(kept)) = (&self.home, &mut self.kept) else {
            return Changes::default();
        };
        // Most cells leave no files; waking a thread to see that takes as long as a short cell.
        let is_bare = self.user_dir.is_none() && kept.files.is_empty();
        if is_bare && files::is_empty(&home.workspace) {
            return Changes::default();
        }
        let Ok(workspace) = home.workspace.try_clone() else { return Changes::default() };
        let layers = home.layers.as_ref().and_then(|layers| layers.try_clone().ok());
        let freezer = Freezer::new(&self.roots);
        kept.artifacts = Some(keep.clone());
        let (before, user_dir) = (std::mem::take(&mut kept.files), self.user_dir.take());
        let look = move || {
            Ok(match (user_dir, layers) {
                (Some(mut dir), Some(layers)) => {
                    // Else a file could be half written when it is copied.
                    let changes = match freezer.freeze() {
                        Ok(frozen) => {
                            let changes = dir.commit(&layers, &keep);
                            if !frozen.is_still() {
                                tracing::debug!("a session's processes were woken meanwhile");
                            }
                            changes
                        }
                        Err(error) => user_dir::not_committed(&error),
                    };
                    (changes, before, Some(dir))
                }
                (Some(dir), None) => (Changes::default(), before, Some(dir)),
                (None, _) => {
                    let (changes, after) = files::collect(workspace, &before, &keep);
                    (changes, after, None)
                }
            })
        };
        let Ok((mut changes, after, user_dir)) = zygote::blocking(look).await else {
            return Changes::default();
        };
        kept.files = after;
        self.user_dir = user_dir;
        let between = std::mem::take(&mut kept.between);
        changes.between_cells = (!between.is_empty()).then(|| Box::new(between));
        changes
    }
}
