//! Cells: what is sent to a worker that is kept, one at a time.
//!
//! The guest says that a cell has ended, and over the socket: nothing that code prints can be
//! mistaken for it, and what code could forge ends its own cell, of its own session, and no other.

use std::path::PathBuf;
use std::time::Duration;

use codexec_types::{
    Admitted, Answer, CallCode, CallError, Cell, CellEnding, Changes, Json, Limit, Outcome, Stream,
    Thrown, ThrownCode, ToGuest,
};
use tokio::time::Instant;

use super::idle::{IDLE_LOOK, Late};
use super::{LOOK, MAX_QUESTIONS, Over, Run, State, Usage};
use crate::files::{self, WorkspaceFiles};
use crate::clock::Clock;
use crate::freeze::Freezer;
use crate::judge::Evidence;
use crate::slot::Busy;
use crate::watch::Roots;
use crate::{user_dir, zygote};

/// How long a cell that was told to stop may take for it.
const STOP_GRACE: Duration = Duration::from_secs(1);

/// What a session has beside the cell that runs.
#[derive(Default)]
pub(super) struct Kept {
    /// The cell that runs, or ran last.
    number: u32,
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
}

impl Kept {
    /// Of a worker that has done nothing yet.
    pub(super) fn new(roots: &[i32]) -> Kept {
        let roots = Roots::new(roots);
        Kept { memory_bytes: roots.used().memory_bytes, roots, ..Kept::default() }
    }
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
        kept.number = number;
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
            code: admitted.code().to_owned(),
            input: admitted.input().clone(),
            args: admitted.args().to_vec(),
        };
        match ToGuest::Cell(cell).encode() {
            Ok(frame) => self.outbox.push(frame),
            Err(_) => self.babbled(),
        }
        Ok(())
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
                if let Some(home) = &self.home {
                    home.interrupt(&self.handles);
                }
                self.state = State::Asked(outcome, Instant::now() + STOP_GRACE);
            }
            // It was asked before, and the first reason is the one that is told.
            (Some(_), State::Asked(..) | State::Dying(..) | State::Ended(_)) => {}
        }
    }

    /// THREAT[SES-1]: only the end of the cell that runs is one; any other is a word too many.
    pub(super) fn accept_end_of_cell(&mut self, number: u32, ending: CellEnding) {
        let is_this = self.kept.as_ref().is_some_and(|kept| kept.number == number);
        if !is_this {
            match self.questions_left.checked_sub(1) {
                Some(left) => self.questions_left = left,
                None => self.babbled(),
            }
            return;
        }
        self.hear_waiting_output();
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
        let Some(home) = &mut self.home else { return };
        let heard =
            [(Stream::Out, home.out.read_waiting()), (Stream::Err, home.err.read_waiting())];
        for (stream, (text, bytes)) in heard {
            if let Some(event) = self.accept_output(stream, text, bytes) {
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
                        Ok(_frozen) => dir.commit(&layers, &keep),
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
        let Ok((changes, after, user_dir)) = zygote::blocking(look).await else {
            return Changes::default();
        };
        kept.files = after;
        self.user_dir = user_dir;
        changes
    }
}
