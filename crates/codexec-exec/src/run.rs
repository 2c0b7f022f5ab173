mod cell;
mod death;
mod directory;
mod earlier;
mod idle;
mod over;
mod renewal;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use codexec_sandbox::{Posture, ZygoteLink};
use codexec_types::{
    Answer, Ask, CallCode, CallError, Changes, Crash, Event, FromGuest, Job, Json, Language, Limit,
    Limits, Outcome, Stream, ToGuest,
};
use tokio::time::{Instant, sleep_until};

use self::cell::Kept;
use self::earlier::Earlier;
use crate::clock::Clock;
use crate::files::WorkspaceFiles;
use crate::judge::Claim;
use crate::memory::Guarded;
use crate::output::{Output, written};
use crate::pool::{Hold, Machine};
use crate::program::{GuestNews, Home};
use crate::slot::{Busy, Handles, Slot, Worker};
use crate::user_dir::UserDir;
use crate::watch::{Used, Watch};
use crate::wire::{Inbox, Outbox, Received, Speaker};
use crate::{files, zygote};

pub use over::Over;

/// One execution in flight, or a session with one cell at a time. Dropping it kills the worker and
/// frees its slot: state whose end we did not see is never trusted again.
pub struct Run {
    inbox: Inbox,
    outbox: Outbox,
    handles: Handles,
    busy: Option<Busy>,
    home: Option<Home>,
    /// Process ids on the host from which all of the guest's processes descend.
    roots: Vec<i32>,
    user_dir: Option<UserDir>,
    hold: Hold,
    posture: Posture,
    language: Language,
    limits: Limits,
    clock: Clock,
    next_look: Instant,
    watch: Option<Watch>,
    /// For programs: ends them when they hold too much memory.
    guarded: Option<Guarded>,
    output_bytes_left: u64,
    tool_calls_left: u32,
    questions_left: u32,
    /// What each unanswered ask weighs.
    unanswered: HashMap<u32, usize>,
    is_compiled: bool,
    /// Whether the guest has closed its end.
    is_mute: bool,
    claim: Option<Claim>,
    state: State,
    /// What was still on its way when the guest ended.
    leftovers: VecDeque<Event>,
    limits_met: Vec<Limit>,
    usage: Usage,
    /// For a session: what is there beside the cell that runs.
    kept: Option<Kept>,
}

enum State {
    Running,
    /// Programs were asked to end, or a session to stop its cell; what they do now is not waited
    /// for longer than this.
    Asked(Outcome, Instant),
    /// The worker has been killed, or has ended; its death has yet to be seen. With what was
    /// decided before, or the wait status of the guest's first process.
    Dying(Option<Outcome>, Option<i32>),
    /// Nothing runs. A session may still be there, and take the next cell.
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
/// Of what its asks weigh: less than may wait for one server, so no guest alone fills that.
const MAX_UNANSWERED_BYTES: usize = 4 << 20;
/// More of a message about progress is not kept.
const PROGRESS_BYTES: usize = 4 << 10;
const MAX_OUTBOX_BYTES: usize = 32 << 20;
/// How long programs that were asked to end may take.
const GRACE: Duration = Duration::from_millis(150);
/// How often a tree of processes is looked at. Most guests have ended before the first time.
const LOOK: Duration = Duration::from_millis(50);

impl Run {
    pub(crate) fn new(
        job: Job,
        limits: Limits,
        slot: Slot,
        user_dir: Option<UserDir>,
        hold: Hold,
    ) -> Run {
        let (busy, worker) = slot.occupy();
        let Worker { socket, handles, home, roots } = worker;
        let (reader, writer) = socket.into_split();
        let speaker = match (&home, job.is_session) {
            (Some(home), true) => speaker(job.language, home, &roots),
            _ => Speaker::Anybody,
        };
        let now = Instant::now();
        let guard = |home: &Home| {
            let meter = Arc::clone(&home.meter);
            hold.guard().watch(meter, handles.worker(), limits.memory_bytes)
        };
        let mut run = Run {
            guarded: home.as_ref().map(guard),
            inbox: Inbox::new(reader, speaker),
            outbox: Outbox::new(writer),
            handles,
            posture: busy.base.posture.clone(),
            busy: Some(busy),
            is_compiled: home.is_some(),
            home,
            roots,
            user_dir,
            hold,
            language: job.language,
            limits,
            clock: Clock::new(now + limits.wall),
            next_look: now + LOOK,
            watch: None,
            output_bytes_left: limits.output_bytes,
            tool_calls_left: limits.tool_calls,
            questions_left: MAX_QUESTIONS,
            unanswered: HashMap::new(),
            is_mute: false,
            claim: None,
            state: State::Running,
            leftovers: VecDeque::new(),
            limits_met: Vec::new(),
            usage: Usage::default(),
            kept: None,
        };
        if job.is_session {
            run.state = State::Ended(Outcome::Returned(Json::null()));
            run.kept = Some(Kept::new(&run.roots));
        }
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
                State::Running | State::Asked(..) => {
                    if let Some(event) = self.leftovers.pop_front() {
                        return event;
                    }
                    if let Some(event) = self.listen().await {
                        return event;
                    }
                }
                State::Dying(..) => self.see_death().await,
                State::Ended(outcome) => {
                    let ended = Event::Ended(outcome.clone());
                    return self.leftovers.pop_front().unwrap_or(ended);
                }
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

    /// The guest waits for a human: the time does not count until [`Run::go_on`].
    pub fn wait(&mut self) {
        self.clock.stop(Instant::now());
    }

    pub fn go_on(&mut self) {
        self.clock.go_on(Instant::now());
    }

    /// Kills the guest, or stops the cell of a session. [`Run::next`] then gives the end.
    pub fn cancel(&mut self) {
        if let State::Running | State::Asked(..) = self.state {
            self.stop(Outcome::Cancelled);
        }
    }

    /// Kills the guest without asking first, and with it the session whose cell it is.
    pub fn kill(&mut self) {
        if let State::Running | State::Asked(..) = self.state {
            self.end(Outcome::Cancelled);
        }
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// What the guest did to the directory it worked in; only after the end. What is not the
    /// user's own directory is gone then, so its files are copied to `keep`.
    ///
    /// For a session, what has changed since the last cell.
    pub async fn changes(&mut self, keep: PathBuf) -> Changes {
        if self.kept.is_some() {
            return self.cell_changes(keep).await;
        }
        // Our own engine's guests have no files, and wait for no thread.
        let Some(home) = self.home.take() else { return Changes::default() };
        let user_dir = self.user_dir.take();
        let look = move || {
            Ok(match (user_dir, home.layers) {
                (Some(mut dir), Some(layers)) => dir.commit(&layers, &keep),
                (Some(_), None) => Changes::default(),
                (None, _) => files::collect(home.workspace, &WorkspaceFiles::new(), &keep).0,
            })
        };
        zygote::blocking(look).await.unwrap_or_default()
    }

    /// The limits that it met without being stopped by them; only after the end.
    pub fn limits_met(&self) -> Vec<Limit> {
        self.limits_met.clone()
    }

    pub fn posture(&self) -> &Posture {
        &self.posture
    }

    /// What the worker was made by.
    pub(crate) fn behind(&self) -> Option<(Arc<Machine>, Arc<ZygoteLink>)> {
        let zygote = Arc::clone(&self.busy.as_ref()?.base.zygote);
        Some((Arc::clone(self.hold.machine()), zygote))
    }

    pub(crate) fn home_mut(&mut self) -> Option<&mut Home> {
        self.home.as_mut()
    }

    async fn listen(&mut self) -> Option<Event> {
        if self.may_ask() {
            match self.inbox.take() {
                Ok(Some(received)) => return self.accept_received(received),
                Ok(None) => {}
                Err(_) => {
                    self.babbled();
                    return None;
                }
            }
        }
        let (may_read, has_answers) = (self.may_ask() && !self.is_mute, !self.outbox.is_empty());
        let until = match &self.state {
            State::Asked(_, until) => *until,
            State::Running | State::Dying(..) | State::Ended(_) => self.clock.deadline(),
        };
        let is_program = self.home.is_some();
        tokio::select! {
            // THREAT[RES-1], THREAT[RES-4]: the deadline is ours, and it kills.
            () = sleep_until(until) => self.time_is_up(),
            read = self.inbox.fill(), if may_read => match read {
                Ok(true) if self.inbox.is_flooded() => self.babbled(),
                Ok(true) => {}
                Ok(false) | Err(_) if is_program => self.is_mute = true,
                Ok(false) | Err(_) => self.died(None),
            },
            written = self.outbox.drain(), if has_answers => {
                // A guest that has gone is noticed by reading, or by its end.
                if written.is_err() && is_program {
                    self.outbox.clear();
                } else if written.is_err() && !may_read {
                    self.died(None);
                }
            }
            heard = heard(&mut self.busy, &mut self.home), if is_program => match heard {
                Heard::Written(stream, text, bytes) => {
                    return self.accept_written(stream, text, bytes);
                }
                Heard::Streams(out, err) => self.take_streams(out, err),
                Heard::Ended(status) => self.died(status),
            },
            (stream, text) = written_late(&mut self.kept) => self.keep_late(stream, &text),
            () = sleep_until(self.next_look), if is_program => self.look(),
        }
        None
    }

    /// It has ended by itself; with the wait status of its first process, where there is one.
    fn died(&mut self, status: Option<i32>) {
        let decided = match &self.state {
            State::Asked(outcome, _) => Some(outcome.clone()),
            State::Running | State::Dying(..) | State::Ended(_) => None,
        };
        self.state = State::Dying(decided, status);
    }

    fn may_ask(&self) -> bool {
        // What a cell that was told to stop still wants is dropped, so that its end is heard.
        let is_stopping = self.kept.is_some() && matches!(self.state, State::Asked(..));
        is_stopping
            || self.unanswered.len() < MAX_UNANSWERED
                && self.unanswered.values().sum::<usize>() < MAX_UNANSWERED_BYTES
                && self.outbox.waiting_bytes() < MAX_OUTBOX_BYTES
    }

    /// Programs are asked first, and have a moment for it; nothing else can be asked.
    fn time_is_up(&mut self) {
        match &self.state {
            // It was asked for a reason, which is why it ends.
            State::Asked(outcome, _) => self.end(outcome.clone()),
            State::Running | State::Dying(..) | State::Ended(_) if self.kept.is_some() => {
                self.stop(Outcome::Stopped(Limit::Wall));
            }
            State::Running | State::Dying(..) | State::Ended(_) if self.home.is_none() => {
                self.end(Outcome::Stopped(Limit::Wall));
            }
            State::Running | State::Dying(..) | State::Ended(_) => {
                self.handles.ask_to_end();
                let until = Instant::now() + GRACE;
                self.state = State::Asked(Outcome::Stopped(Limit::Wall), until);
            }
        }
    }

    /// THREAT[RES-2]: a tree of processes is held to its limits as a whole.
    fn look(&mut self) {
        self.next_look = Instant::now() + LOOK;
        self.end_stopped_processes();
        self.used();
        if self.usage.cpu > self.limits.cpu {
            self.stop(Outcome::Stopped(Limit::Cpu));
        }
    }

    /// What a program's whole tree uses. The kernel does not tell it of a tree that is killed.
    fn used(&mut self) -> Used {
        let (Some(home), Some(_)) = (&self.home, &self.busy) else { return Used::default() };
        let watch = self.watch.get_or_insert_with(|| Watch::new(self.roots.clone()));
        let used = watch.used(&home.meter);
        let before = self.kept.as_ref().map_or(Duration::ZERO, |kept| kept.cpu_before);
        self.usage.cpu = self.usage.cpu.max(used.cpu.saturating_sub(before));
        self.usage.peak_memory_bytes = self.usage.peak_memory_bytes.max(used.memory_bytes);
        used
    }

    fn accept_output(&mut self, stream: Stream, text: String, bytes: u64) -> Option<Event> {
        match self.output_bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.output_bytes_left = left;
                (!text.is_empty()).then_some(Event::Output { stream, text })
            }
            // THREAT[RES-3]
            None => {
                self.output_bytes_left = 0;
                self.stop(Outcome::Stopped(Limit::Output));
                None
            }
        }
    }

    fn accept_received(&mut self, received: Received) -> Option<Event> {
        match received {
            Received::Frame(frame) => self.accept(frame),
            Received::Ask(FromGuest::Ask { id, ask }, weight) => self.accept_ask(id, ask, weight),
            Received::Ask(frame, _) => self.accept(frame),
            Received::Refused(id, error) => {
                match self.questions_left.checked_sub(1) {
                    Some(_) if self.unanswered.contains_key(&id) => self.babbled(),
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

    /// THREAT[ORD-5]: what code says about its progress counts as its output does.
    fn accept_progress(&mut self, mut text: String) -> Option<Event> {
        let left = self.output_bytes_left.checked_sub(text.len() as u64);
        let (Some(bytes), Some(questions)) = (left, self.questions_left.checked_sub(1)) else {
            self.stop(Outcome::Stopped(Limit::Output));
            return None;
        };
        (self.output_bytes_left, self.questions_left) = (bytes, questions);
        text.truncate(text.floor_char_boundary(PROGRESS_BYTES));
        text.shrink_to_fit();
        Some(Event::Progress(text))
    }

    /// What a frame means, by our own count.
    fn accept(&mut self, frame: FromGuest) -> Option<Event> {
        match frame {
            FromGuest::Compiled => self.is_compiled = true,
            // THREAT[SES-10]: programs write to pipes. What comes as a frame is what the guest
            // knows to be an earlier cell's.
            FromGuest::Output { stream, text } if self.kept.is_some() && self.home.is_some() => {
                self.keep_late(stream, &text);
            }
            FromGuest::Output { stream, text } => {
                let bytes = text.len() as u64;
                return self.accept_output(stream, text, bytes);
            }
            FromGuest::Progress(text) => return self.accept_progress(text),
            FromGuest::Image(image) => match self.questions_left.checked_sub(1) {
                Some(left) => {
                    self.questions_left = left;
                    return Some(Event::Image(image));
                }
                None => self.stop(Outcome::Stopped(Limit::Output)),
            },
            // It comes with its weight, see below.
            FromGuest::Ask { .. } => {}
            FromGuest::CellEnded { key, ending } if self.kept.is_some() => {
                self.accept_end_of_cell(&key, ending);
            }
            // A session says how its cells end, anybody else how they do.
            FromGuest::Returned(_) | FromGuest::Threw(_) if self.kept.is_some() => self.babbled(),
            FromGuest::CellEnded { .. } => self.babbled(),
            FromGuest::Returned(value) => self.claimed(Claim::Returned(value)),
            FromGuest::Threw(thrown) => self.claimed(Claim::Threw(thrown)),
        }
        None
    }

    /// THREAT[BRG-1]: what is not a frame, or not the guest's to say, ends the guest and only it.
    fn babbled(&mut self) {
        self.end(Outcome::Crashed(Crash::BadFrame));
    }

    /// Our own engine says how it ended and is done; a program has yet to end.
    fn claimed(&mut self, claim: Claim) {
        self.claim = Some(claim);
        if self.home.is_none() {
            self.handles.kill();
            self.state = State::Dying(None, None);
        }
    }

    fn refuse(&mut self, id: u32, error: CallError) {
        if let Ok(frame) = (ToGuest::Answer(Answer { id, result: Err(error) })).encode() {
            self.outbox.push(frame);
        }
    }

    fn accept_ask(&mut self, id: u32, ask: Ask, weight: usize) -> Option<Event> {
        let left =
            if ask.is_tool_call() { &mut self.tool_calls_left } else { &mut self.questions_left };
        let Some(fewer) = left.checked_sub(1) else {
            self.stop(Outcome::Stopped(Limit::ToolCalls));
            return None;
        };
        *left = fewer;
        if self.kept.is_some() && matches!(self.state, State::Asked(..)) {
            return None;
        }
        if ask.is_tool_call() {
            self.usage.tool_calls += 1;
        }
        if self.unanswered.insert(id, weight).is_some() {
            self.babbled();
            return None;
        }
        Some(Event::Ask { id, ask })
    }

    fn end(&mut self, outcome: Outcome) {
        self.used();
        self.handles.kill();
        self.state = State::Dying(Some(outcome), None);
    }
}

/// What comes from a program beside its frames.
enum Heard {
    Written(Stream, String, u64),
    /// The output of the cell that begins.
    Streams(Output, Output),
    /// The wait status of its first process, if that could be seen.
    Ended(Option<i32>),
}

async fn heard(busy: &mut Option<Busy>, home: &mut Option<Home>) -> Heard {
    let (Some(busy), Some(home)) = (busy, home) else { return std::future::pending().await };
    let Home { out, err, init, used, .. } = home;
    tokio::select! {
        (stream, text, bytes) = written(out, err) => Heard::Written(stream, text, bytes),
        news = busy.guest_news(init, used) => match news {
            Ok(GuestNews::Streams(out, err)) => Heard::Streams(out, err),
            Ok(GuestNews::Ended(status)) => Heard::Ended(Some(status)),
            Err(_) => Heard::Ended(None),
        },
    }
}

/// What is written next to the output of an earlier cell.
async fn written_late(kept: &mut Option<Kept>) -> (Stream, String) {
    match kept.as_mut().map(|kept| &mut kept.earlier) {
        Some(earlier) => Earlier::written(earlier).await,
        None => std::future::pending().await,
    }
}

/// Which process of a session speaks for it.
fn speaker(language: Language, home: &Home, roots: &[i32]) -> Speaker {
    match (language, roots) {
        (Language::Node, _) => Speaker::FirstChild,
        // A guest that entered is the last of the roots; else it is init that speaks.
        (_, [.., guest]) if home.guest.is_some() => Speaker::Process(*guest),
        (_, [init, ..]) => Speaker::Process(*init),
        (_, []) => Speaker::Anybody,
    }
}
