//! An execution in flight. A run is three things: a conversation with a guest, the body that the
//! guest runs in, and, for a session, the state that outlives a cell.

mod body;
mod conversation;
mod death;
mod frame_handling;
mod session;
mod usage;

use std::path::PathBuf;
use std::time::Duration;

use codexec_sandbox::Posture;
use codexec_types::{
    AskAnswer, Crash, FileChanges, Json, Limit, Limits, Outcome, OutputStream, RunEvent, ToGuest,
    WorkerJob,
};
use tokio::time::{Instant, sleep_until};

use self::body::{Body, BodyEvent, EndSign};
use self::conversation::{Breach, Conversation, SocketEvent};
use self::session::Session;
use crate::PackageMounter;

pub(crate) use self::body::WaitingBody;
pub use self::session::SessionEnd;
pub use self::usage::Usage;

/// An execution in flight, or a session with one cell at a time. Dropping a run kills the guest: a
/// guest whose end was not observed is never reused.
pub struct Run {
    conversation: Conversation,
    body: Body,
    /// For a session: the state that outlives a cell.
    session: Option<Session>,
    state: RunState,
}

enum RunState {
    Running,
    /// The guest of a single execution was asked to terminate. At the instant it is killed.
    Terminating(Outcome, Instant),
    /// The cell of a session was interrupted. At the instant the session is killed. Asks are read
    /// and dropped, so that the end of the cell arrives.
    Interrupted(Outcome, Instant),
    /// The guest was killed or has exited, but is not reaped yet. With the outcome that was already
    /// decided, or the wait status of the guest's first process.
    Dying(Option<Outcome>, Option<i32>),
    /// Nothing runs. A session may still be open and take the next cell.
    Ended(Outcome),
}

/// Interval between two measurements of a process tree. Most guests end before the first.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

impl Run {
    /// Gives a job to a waiting body.
    pub(crate) fn new(job: WorkerJob, limits: Limits, waiting: WaitingBody) -> Run {
        let WaitingBody { body, inbox, outbox } = waiting;
        let conversation = Conversation::new(inbox, outbox, limits);
        let mut run = Run { conversation, body, session: None, state: RunState::Running };
        if job.is_session {
            run.state = RunState::Ended(Outcome::Returned(Json::null()));
            run.session = Some(Session::default());
            run.conversation.usage.held_bytes = run.body.main_process_bytes();
        }
        if let Err(breach) = run.conversation.send(&ToGuest::Start(job), Vec::new()) {
            run.stop_for(breach);
        }
        run
    }

    /// Returns the next event. Cancel-safe, so it can be used in `select!`. Limits are enforced
    /// here, whatever the guest does.
    pub async fn next(&mut self) -> RunEvent {
        loop {
            match &self.state {
                RunState::Running | RunState::Terminating(..) | RunState::Interrupted(..) => {
                    if let Some(event) = self.conversation.events.pop_front() {
                        return event;
                    }
                    if let Some(event) = self.listen().await {
                        return event;
                    }
                }
                RunState::Dying(..) => self.wait_for_death().await,
                RunState::Ended(outcome) => {
                    let event = self.conversation.events.pop_front();
                    return event.unwrap_or_else(|| RunEvent::Ended(outcome.clone()));
                }
            }
        }
    }

    /// Queues the answer to an ask. It is written while [`Run::next`] waits.
    pub fn answer(&mut self, answer: AskAnswer) {
        self.conversation.answer(answer);
    }

    /// Pauses the wall clock until [`Run::resume_clock`], because the guest waits for a human.
    pub fn pause_clock(&mut self) {
        self.conversation.clock.pause(Instant::now());
    }

    pub fn resume_clock(&mut self) {
        self.conversation.clock.resume(Instant::now());
    }

    /// Kills the guest, or stops the cell of a session. [`Run::next`] then returns the end.
    pub fn cancel(&mut self) {
        if self.is_running() {
            self.stop(Outcome::Cancelled);
        }
    }

    /// Kills the guest at once, and with it the session if it is a cell.
    pub fn kill(&mut self) {
        if self.is_running() {
            self.end(Outcome::Cancelled);
        }
    }

    pub fn usage(&self) -> Usage {
        self.conversation.usage.usage
    }

    /// Returns what the guest changed in its directory; only after the end. Files in a temporary
    /// workspace are copied to `keep`, because the workspace is deleted.
    ///
    /// For a session, these are the changes since the last cell.
    pub async fn collect_changes(&mut self, keep: PathBuf) -> FileChanges {
        if let Some(session) = &mut self.session {
            session.note_artifacts(keep.clone());
        }
        let changes = self.body.collect_changes(keep).await;
        match &mut self.session {
            Some(session) => session.complete_changes(changes),
            None => changes,
        }
    }

    /// Returns the limits that the guest reached without being stopped by them; only after the end.
    pub fn reached_limits(&self) -> Vec<Limit> {
        self.conversation.limits_met.clone()
    }

    pub fn posture(&self) -> &Posture {
        self.body.posture()
    }

    /// Returns a handle to mount packages. `None` for guests without files or without packages.
    pub fn package_mounter(&self) -> Option<PackageMounter> {
        self.body.package_mounter()
    }

    fn is_running(&self) -> bool {
        match &self.state {
            RunState::Running | RunState::Terminating(..) | RunState::Interrupted(..) => true,
            RunState::Dying(..) | RunState::Ended(_) => false,
        }
    }

    async fn listen(&mut self) -> Option<RunEvent> {
        let may_read = self.drops_asks() || self.conversation.has_ask_capacity();
        if may_read {
            match self.conversation.take_frame() {
                Ok(Some(received)) => {
                    let accepted = self.accept(received);
                    return self.handle(accepted);
                }
                Ok(None) => {}
                Err(_) => {
                    self.end_for_bad_frame();
                    return None;
                }
            }
        }
        let until = match &self.state {
            RunState::Terminating(_, until) | RunState::Interrupted(_, until) => *until,
            RunState::Running | RunState::Dying(..) | RunState::Ended(_) => {
                self.conversation.clock.deadline()
            }
        };
        tokio::select! {
            // THREAT[RES-1], THREAT[RES-4]: the host owns the deadline and kills the guest.
            () = sleep_until(until) => self.handle_deadline(),
            event = self.conversation.transfer(may_read) => self.handle_socket(event),
            event = self.body.next_event() => match event {
                BodyEvent::Output(stream, text, bytes) => {
                    let accepted = self.conversation.accept_output(stream, text, bytes);
                    return self.handle(accepted);
                }
                BodyEvent::LateOutput(stream, text) => self.store_late_output(stream, &text),
                BodyEvent::CheckDue => self.check_limits(),
                BodyEvent::Ended(status) => self.note_exit(status),
            },
        }
        None
    }

    fn handle_socket(&mut self, event: SocketEvent) {
        match (event, self.body.end_sign()) {
            (SocketEvent::Moved, _) => {}
            (SocketEvent::Flooded, _) => self.end_for_bad_frame(),
            (SocketEvent::Closed, EndSign::Exit) => self.conversation.close_input(),
            (SocketEvent::NotWritable { .. }, EndSign::Exit) => self.conversation.clear_output(),
            (SocketEvent::NotWritable { is_read: true }, EndSign::Frames) => {}
            (SocketEvent::Closed, EndSign::Frames)
            | (SocketEvent::NotWritable { is_read: false }, EndSign::Frames) => {
                self.note_exit(None);
            }
        }
    }

    /// Records that the guest exited by itself, with the wait status of its first process if known.
    fn note_exit(&mut self, status: Option<i32>) {
        let decided = match &self.state {
            RunState::Terminating(outcome, _) | RunState::Interrupted(outcome, _) => {
                Some(outcome.clone())
            }
            RunState::Running | RunState::Dying(..) | RunState::Ended(_) => None,
        };
        self.state = RunState::Dying(decided, status);
    }

    /// Handles the deadline. The guest is asked to end first, if it has a grace period and its body
    /// can do that.
    fn handle_deadline(&mut self) {
        let outcome = Outcome::Stopped(Limit::Wall);
        match (&self.state, &self.session) {
            // Keeps the reason for which the guest was asked to stop.
            (RunState::Terminating(reason, _) | RunState::Interrupted(reason, _), _) => {
                self.end(reason.clone());
            }
            (_, Some(_)) => self.interrupt_cell(outcome),
            (_, None) => {
                let grace = self.conversation.limits.grace;
                match !grace.is_zero() && self.body.ask_to_end() {
                    true => self.state = RunState::Terminating(outcome, Instant::now() + grace),
                    false => self.end(outcome),
                }
            }
        }
    }

    /// THREAT[RES-2]: limits apply to the process tree as a whole.
    fn check_limits(&mut self) {
        let used = self.body.check(CHECK_INTERVAL);
        self.conversation.usage.record(used);
        if self.conversation.usage.usage.cpu > self.conversation.limits.cpu {
            self.stop(Outcome::Stopped(Limit::Cpu));
        }
    }

    fn store_late_output(&mut self, stream: OutputStream, text: &str) {
        if let Some(session) = &mut self.session {
            session.store_late_output(stream, text);
        }
    }

    fn stop_for(&mut self, breach: Breach) {
        match breach {
            Breach::Limit(limit) => self.stop(Outcome::Stopped(limit)),
            Breach::BadFrame => self.end_for_bad_frame(),
        }
    }

    /// THREAT[BRG-1]: an invalid frame ends this guest and nothing else.
    fn end_for_bad_frame(&mut self) {
        self.end(Outcome::Crashed(Crash::BadFrame));
    }

    /// Stops the guest with this outcome: interrupts the cell of a session, or kills the guest.
    fn stop(&mut self, outcome: Outcome) {
        match &self.session {
            Some(_) => self.interrupt_cell(outcome),
            None => self.end(outcome),
        }
    }

    /// Kills the guest, and with it the session.
    fn end(&mut self, outcome: Outcome) {
        let used = self.body.measure();
        self.conversation.usage.record(used);
        self.body.kill();
        self.state = RunState::Dying(Some(outcome), None);
    }
}
