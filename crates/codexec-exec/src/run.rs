use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use codexec_sandbox::{Exit, Posture};
use codexec_types::{
    Answer, Ask, CallCode, CallError, Changes, Crash, Event, FromGuest, Job, Language, Limit,
    Limits, Outcome, Thrown, ThrownCode, ToGuest,
};
use tokio::time::{Instant, sleep_until};

use crate::pool::Hold;
use crate::slot::{Busy, Handles, Worker};
use crate::wire::{Inbox, Outbox};

/// One execution in flight. Dropping it kills the worker and frees its slot: state whose
/// end we did not see is never trusted again.
pub struct Run {
    inbox: Inbox,
    outbox: Outbox,
    handles: Handles,
    hold: Hold,
    language: Language,
    deadline: Instant,
    memory_bytes: u64,
    output_bytes_left: u64,
    tool_calls_left: u32,
    questions_left: u32,
    /// What each unanswered ask weighs.
    unanswered: HashMap<u32, usize>,
    is_compiled: bool,
    state: State,
    usage: Usage,
}

enum State {
    Running,
    /// The worker has been killed, or has closed its socket; its death has yet to be seen.
    Dying(Option<Outcome>),
    Ended(Outcome),
}

/// What an execution used, as the host saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub tool_calls: u32,
    pub cpu: Duration,
    pub peak_memory_bytes: u64,
}

/// Asks that go to no upstream are cheap, but not free.
const MAX_QUESTIONS: u32 = 10_000;
/// The guest is not listened to while this much of what it wants is under way.
const MAX_UNANSWERED: usize = 64;
const MAX_UNANSWERED_BYTES: usize = 32 << 20;
const MAX_OUTBOX_BYTES: usize = 32 << 20;
/// How long a killed worker may take to be gone.
const DEATH: Duration = Duration::from_secs(10);

impl Run {
    pub(crate) fn new(job: Job, limits: Limits, worker: Worker, hold: Hold) -> Run {
        let (reader, writer) = worker.socket.into_split();
        let mut run = Run {
            inbox: Inbox::new(reader),
            outbox: Outbox::new(writer),
            handles: worker.handles,
            hold,
            language: job.language,
            deadline: Instant::now() + limits.wall,
            memory_bytes: limits.memory_bytes,
            output_bytes_left: limits.output_bytes,
            tool_calls_left: limits.tool_calls,
            questions_left: MAX_QUESTIONS,
            unanswered: HashMap::new(),
            is_compiled: false,
            state: State::Running,
            usage: Usage::default(),
        };
        match ToGuest::Start(job).encode() {
            Ok(frame) => run.outbox.push(frame),
            Err(_) => run.end(Outcome::Crashed(Crash::BadFrame)),
        }
        run
    }

    /// The next event. Cancel-safe, so it may stand in a `select!`. A limit that is hit ends
    /// the run here, whatever the guest does.
    pub async fn next(&mut self) -> Event {
        loop {
            match &self.state {
                State::Running => {
                    if let Some(event) = self.listen().await {
                        return event;
                    }
                }
                State::Dying(_) => self.see_death().await,
                State::Ended(outcome) => return Event::Ended(outcome.clone()),
            }
        }
    }

    /// Answers an ask. It is written while [`Run::next`] waits.
    pub fn answer(&mut self, answer: Answer) {
        self.unanswered.remove(&answer.id);
        let id = answer.id;
        let frame = ToGuest::Answer(answer).encode().or_else(|_| {
            let error = CallError::new(CallCode::UpstreamError, "the result is too large");
            ToGuest::Answer(Answer { id, result: Err(error) }).encode()
        });
        if let Ok(frame) = frame {
            self.outbox.push(frame);
        }
    }

    /// Kills the guest. [`Run::next`] then gives the end.
    pub fn cancel(&mut self) {
        if let State::Running = self.state {
            self.end(Outcome::Cancelled);
        }
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What the guest did to the directory it worked in; only after the end. What is not the
    /// user's own directory is gone then, so its files are copied to `keep`.
    #[expect(clippy::unused_async, clippy::unused_self, reason = "not there yet")]
    pub async fn changes(&mut self, keep: PathBuf) -> Changes {
        drop(keep);
        Changes::default()
    }

    /// The limits that it met without being stopped by them; only after the end.
    #[expect(clippy::unused_self, reason = "not there yet")]
    pub fn limits_met(&self) -> Vec<Limit> {
        Vec::new()
    }

    pub fn posture(&self) -> Option<&Posture> {
        self.hold.busy.as_ref().map(|busy| &busy.posture)
    }

    async fn listen(&mut self) -> Option<Event> {
        if self.may_ask() {
            match self.inbox.take() {
                Ok(Some(frame)) => return self.accept(frame),
                Ok(None) => {}
                Err(_) => {
                    // THREAT[BRG-1]: what is not a frame ends the guest, and only the guest.
                    self.end(Outcome::Crashed(Crash::BadFrame));
                    return None;
                }
            }
        }
        let (may_ask, has_answers) = (self.may_ask(), !self.outbox.is_empty());
        tokio::select! {
            // THREAT[RES-1], THREAT[RES-4]: the deadline is ours, and it kills.
            () = sleep_until(self.deadline) => self.end(Outcome::Stopped(Limit::Wall)),
            read = self.inbox.fill(), if may_ask => match read {
                Ok(true) => {}
                Ok(false) | Err(_) => self.state = State::Dying(None),
            },
            written = self.outbox.drain(), if has_answers => {
                // A guest that has gone is noticed by reading.
                if written.is_err() && !may_ask {
                    self.state = State::Dying(None);
                }
            }
        }
        None
    }

    fn may_ask(&self) -> bool {
        self.unanswered.len() < MAX_UNANSWERED
            && self.unanswered.values().sum::<usize>() < MAX_UNANSWERED_BYTES
            && self.outbox.waiting_bytes() < MAX_OUTBOX_BYTES
    }

    /// What a frame means, by our own count.
    fn accept(&mut self, frame: FromGuest) -> Option<Event> {
        match frame {
            FromGuest::Compiled => self.is_compiled = true,
            FromGuest::Output { stream, text } => {
                match self.output_bytes_left.checked_sub(text.len() as u64) {
                    Some(left) => {
                        self.output_bytes_left = left;
                        return Some(Event::Output { stream, text });
                    }
                    // THREAT[RES-3]
                    None => self.end(Outcome::Stopped(Limit::Output)),
                }
            }
            FromGuest::Progress(text) => match self.questions_left.checked_sub(1) {
                Some(left) => {
                    self.questions_left = left;
                    return Some(Event::Progress(text));
                }
                None => self.end(Outcome::Stopped(Limit::Output)),
            },
            FromGuest::Image(image) => return Some(Event::Image(image)),
            FromGuest::Ask { id, ask } => return self.accept_ask(id, ask),
            FromGuest::Returned(value) => self.end(Outcome::Returned(value)),
            FromGuest::Threw(thrown) => self.end(Outcome::Threw(thrown)),
        }
        None
    }

    fn accept_ask(&mut self, id: u32, ask: Ask) -> Option<Event> {
        let left =
            if ask.is_tool_call() { &mut self.tool_calls_left } else { &mut self.questions_left };
        let Some(fewer) = left.checked_sub(1) else {
            self.end(Outcome::Stopped(Limit::ToolCalls));
            return None;
        };
        *left = fewer;
        let bytes = match &ask {
            Ask::Tool { args, .. } | Ask::Named { args, .. } => {
                self.usage.tool_calls += 1;
                args.text().len()
            }
            Ask::ToolNames { .. }
            | Ask::Discover { .. }
            | Ask::Search { .. }
            | Ask::Schema { .. }
            | Ask::Help { .. } => 0,
        };
        if self.unanswered.insert(id, bytes).is_some() {
            self.end(Outcome::Crashed(Crash::BadFrame));
            return None;
        }
        Some(Event::Ask { id, ask })
    }

    fn end(&mut self, outcome: Outcome) {
        self.handles.kill();
        self.state = State::Dying(Some(outcome));
    }

    /// The answer goes out only when nothing of the guest is left.
    async fn see_death(&mut self) {
        self.handles.kill();
        let exit = match &mut self.hold.busy {
            Some(busy) => {
                tokio::time::timeout(DEATH, busy.exited()).await.ok().and_then(Result::ok)
            }
            None => None,
        };
        let ran_out = self.hold.busy.as_ref().is_some_and(Busy::ran_out_of_memory);
        match exit {
            Some(exit) => {
                self.usage.cpu = Duration::from_micros(exit.cpu_us);
                self.usage.peak_memory_bytes = exit.peak_bytes;
                self.hold.release();
            }
            // Without a death certificate the slot is not used again; closing it kills.
            None => drop(self.hold.busy.take()),
        }
        let State::Dying(claimed) = &mut self.state else { return };
        let outcome = match claimed.take() {
            Some(Outcome::Threw(thrown)) => self.judged(thrown),
            Some(outcome) => outcome,
            None if ran_out && self.is_compiled => Outcome::Stopped(Limit::Memory),
            None => self.died(ran_out, exit),
        };
        self.state = State::Ended(outcome);
    }

    /// What a guest threw, in the light of what the host saw.
    fn judged(&self, thrown: Thrown) -> Outcome {
        // An engine without memory for an error object throws null, as any guest may, or loses
        // the promise that it was about to settle.
        let is_full = self.usage.peak_memory_bytes >= self.memory_bytes / 4 * 3;
        let is_out = match thrown.code {
            ThrownCode::MemoryLimit => true,
            ThrownCode::RuntimeError => {
                is_full && ["null", Thrown::STUCK].contains(&thrown.message.as_str())
            }
            ThrownCode::SyntaxError
            | ThrownCode::TranspileError
            | ThrownCode::SerializationError
            | ThrownCode::InvalidArgs
            | ThrownCode::ServerNotAllowed
            | ThrownCode::ToolNotAllowed
            | ThrownCode::ToolNotFound
            | ThrownCode::UpstreamError => false,
        };
        match (is_out, self.is_compiled) {
            (true, true) => Outcome::Stopped(Limit::Memory),
            (true, false) => Outcome::Threw(too_deep(self.language)),
            (false, _) => Outcome::Threw(thrown),
        }
    }

    /// What it means that a worker died without a word.
    fn died(&self, ran_out: bool, exit: Option<Exit>) -> Outcome {
        let by = exit.and_then(|exit| exit.signal);
        // THREAT[RES-5]: before the guest's code ran, only our parser can have run out of stack
        // or of memory.
        let overflowed = [SIGSEGV, SIGABRT, SIGBUS].map(Some).contains(&by);
        if !self.is_compiled && (overflowed || ran_out) {
            return Outcome::Threw(too_deep(self.language));
        }
        Outcome::Crashed(Crash::Exited)
    }
}

fn too_deep(language: Language) -> Thrown {
    let code = match language {
        Language::JavaScript | Language::Python | Language::Bash | Language::Node => {
            ThrownCode::SyntaxError
        }
        Language::TypeScript => ThrownCode::TranspileError,
    };
    let message = "the code is nested too deeply to be parsed".to_owned();
    Thrown { code, message, at: None, stack: None }
}

const SIGABRT: i32 = 6;
const SIGBUS: i32 = 7;
const SIGSEGV: i32 = 11;
