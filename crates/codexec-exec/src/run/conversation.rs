//! The frames between the host and a guest, and the host's counts of them.
//!
//! Invariant: nothing here depends on what the guest runs in.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::os::fd::OwnedFd;

use codexec_types::{
    Ask, AskAnswer, CallCode, CallError, FrameError, Image, Limit, Limits, OutputStream, RunEvent,
    ToGuest,
};
use tokio::time::Instant;

use super::usage::{Usage, UsageCounter};
use crate::clock::Clock;
use crate::evidence::Claim;
use crate::frames::{FrameInbox, FrameOutbox, ReceivedFrame};

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

/// The conversation with a guest: frames in both directions, and the host's own counters, limits
/// and clock.
pub(super) struct Conversation {
    inbox: FrameInbox,
    outbox: FrameOutbox,
    /// The guest has closed its end of the socket.
    is_closed: bool,
    pub(super) limits: Limits,
    pub(super) clock: Clock,
    output_bytes_left: u64,
    tool_calls_left: u32,
    questions_left: u32,
    /// The weight of each unanswered ask.
    unanswered: HashMap<u32, usize>,
    /// How the guest says it ended.
    pub(super) claim: Option<Claim>,
    /// Events that the caller has not taken yet: output from before a cell, and what was still in
    /// flight when the guest ended.
    pub(super) events: VecDeque<RunEvent>,
    pub(super) usage: UsageCounter,
    /// Limits that the guest reached without being stopped by them.
    pub(super) limits_met: Vec<Limit>,
}

/// Why the guest has to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breach {
    Limit(Limit),
    BadFrame,
}

/// A change of the guest's socket.
pub(super) enum SocketEvent {
    /// Bytes were read or written.
    Moved,
    /// Processes that may not send frames have written too much.
    Flooded,
    /// The guest has closed its end.
    Closed,
    /// The guest does not take frames any more. If the socket is also read, reading finds out why.
    NotWritable { is_read: bool },
}

impl Conversation {
    pub(super) fn new(inbox: FrameInbox, outbox: FrameOutbox, limits: Limits) -> Conversation {
        Conversation {
            inbox,
            outbox,
            is_closed: false,
            limits,
            clock: Clock::new(Instant::now() + limits.wall),
            output_bytes_left: limits.output_bytes,
            tool_calls_left: limits.tool_calls,
            questions_left: MAX_QUESTIONS,
            unanswered: HashMap::new(),
            claim: None,
            events: VecDeque::new(),
            usage: UsageCounter::default(),
            limits_met: Vec::new(),
        }
    }

    /// Starts all counts again, for the next cell of a session.
    pub(super) fn restart(&mut self, limits: Limits, now: Instant) {
        self.limits = limits;
        self.clock = Clock::new(now + limits.wall);
        self.output_bytes_left = limits.output_bytes;
        self.tool_calls_left = limits.tool_calls;
        self.questions_left = MAX_QUESTIONS;
        self.usage.usage = Usage::default();
        self.limits_met.clear();
    }

    /// Reads from and writes to the socket. Cancel-safe.
    pub(super) async fn transfer(&mut self, may_read: bool) -> SocketEvent {
        let (is_read, is_written) = (may_read && !self.is_closed, !self.outbox.is_empty());
        tokio::select! {
            read = self.inbox.fill(), if is_read => match read {
                Ok(true) if self.inbox.is_flooded() => SocketEvent::Flooded,
                Ok(true) => SocketEvent::Moved,
                Ok(false) | Err(_) => SocketEvent::Closed,
            },
            written = self.outbox.drain(), if is_written => match written {
                Ok(()) => SocketEvent::Moved,
                Err(_) => SocketEvent::NotWritable { is_read },
            },
            else => pending().await,
        }
    }

    /// Reads a dead guest's last frames, until its end of the socket is closed.
    pub(super) async fn read_to_end(&mut self) {
        while self.inbox.fill().await.unwrap_or(false) {}
    }

    /// Returns the next frame that has arrived.
    pub(super) fn take_frame(&mut self) -> Result<Option<ReceivedFrame>, FrameError> {
        self.inbox.take()
    }

    /// Returns the next frame that has arrived, and waits while a long one is decoded.
    pub(super) async fn take_last_frame(&mut self) -> Option<ReceivedFrame> {
        self.inbox.take_arrived().await.ok().flatten()
    }

    /// Stops reading the socket.
    pub(super) fn close_input(&mut self) {
        self.is_closed = true;
    }

    /// Drops the frames that the guest does not take.
    pub(super) fn clear_output(&mut self) {
        self.outbox.clear();
    }

    /// Queues a frame, with descriptors. Fails if the frame is too long.
    pub(super) fn send(&mut self, frame: &ToGuest, fds: Vec<OwnedFd>) -> Result<(), Breach> {
        let frame = frame.encode().map_err(|_| Breach::BadFrame)?;
        self.outbox.push_with(frame, fds);
        Ok(())
    }

    /// Tells the guest to stop its cell. Written at once, because a signal follows, which may
    /// arrive before the guest has read the cell.
    pub(super) fn send_interrupt(&mut self) {
        if let Ok(frame) = ToGuest::Interrupt.encode() {
            self.outbox.push(frame);
        }
        self.outbox.drain_now();
    }

    pub(super) fn answer(&mut self, answer: AskAnswer) {
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

    /// Answers an ask that was never handed to the caller.
    pub(super) fn refuse(&mut self, id: u32, error: CallError) {
        if let Ok(frame) = (ToGuest::Answer(AskAnswer { id, result: Err(error) })).encode() {
            self.outbox.push(frame);
        }
    }

    /// Refuses the unanswered asks, which the caller has dropped, so that no guest waits forever.
    pub(super) fn refuse_unanswered(&mut self) {
        let mut ids: Vec<u32> = self.unanswered.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let message = "the cell that made this call ended before it was answered; await calls \
                           in the cell that makes them";
            let error = CallError::new(CallCode::UpstreamError, message);
            self.answer(AskAnswer { id, result: Err(error) });
        }
    }

    pub(super) fn has_ask_capacity(&self) -> bool {
        self.unanswered.len() < MAX_UNANSWERED
            && self.unanswered.values().sum::<usize>() < MAX_UNANSWERED_BYTES
            && self.outbox.waiting_bytes() < MAX_OUTBOX_BYTES
    }

    /// Counts an ask that needs no upstream, or another cheap message. `breach` says what it is
    /// when there are too many.
    pub(super) fn spend_question(&mut self, breach: Breach) -> Result<(), Breach> {
        self.questions_left = self.questions_left.checked_sub(1).ok_or(breach)?;
        Ok(())
    }

    /// Counts an ask, and hands it to the caller unless asks are dropped.
    pub(super) fn accept_ask(
        &mut self,
        (id, ask, weight): (u32, Ask, usize),
        is_dropped: bool,
    ) -> Result<Option<RunEvent>, Breach> {
        let is_tool_call = ask.is_tool_call();
        let left = if is_tool_call { &mut self.tool_calls_left } else { &mut self.questions_left };
        *left = left.checked_sub(1).ok_or(Breach::Limit(Limit::ToolCalls))?;
        if is_dropped {
            return Ok(None);
        }
        if is_tool_call {
            self.usage.usage.tool_calls += 1;
        }
        match self.unanswered.insert(id, weight) {
            Some(_) => Err(Breach::BadFrame),
            None => Ok(Some(RunEvent::Ask { id, ask })),
        }
    }

    /// Answers an ask that was rejected without being decoded.
    pub(super) fn accept_refused(&mut self, id: u32, error: CallError) -> Result<(), Breach> {
        self.spend_question(Breach::Limit(Limit::ToolCalls))?;
        if self.unanswered.contains_key(&id) {
            return Err(Breach::BadFrame);
        }
        self.refuse(id, error);
        Ok(())
    }

    /// Counts output of this length in bytes.
    pub(super) fn accept_output(
        &mut self,
        stream: OutputStream,
        text: String,
        bytes: u64,
    ) -> Result<Option<RunEvent>, Breach> {
        match self.output_bytes_left.checked_sub(bytes) {
            Some(left) => {
                self.output_bytes_left = left;
                Ok((!text.is_empty()).then_some(RunEvent::Output { stream, text }))
            }
            // THREAT[RES-3]
            None => {
                self.output_bytes_left = 0;
                Err(Breach::Limit(Limit::Output))
            }
        }
    }

    /// Counts output that a dead guest left. Output beyond the limit is dropped.
    pub(super) fn accept_last_output(&mut self, stream: OutputStream, text: String, bytes: u64) {
        self.output_bytes_left = self.output_bytes_left.saturating_sub(bytes);
        if !text.is_empty() && self.output_bytes_left > 0 {
            self.events.push_back(RunEvent::Output { stream, text });
        }
    }

    /// THREAT[ORD-5]: progress messages count as output.
    pub(super) fn accept_progress(&mut self, mut text: String) -> Result<Option<RunEvent>, Breach> {
        let over = Breach::Limit(Limit::Output);
        let bytes_left = self.output_bytes_left.checked_sub(text.len() as u64).ok_or(over)?;
        self.spend_question(over)?;
        self.output_bytes_left = bytes_left;
        text.truncate(text.floor_char_boundary(PROGRESS_BYTES));
        text.shrink_to_fit();
        Ok(Some(RunEvent::Progress(text)))
    }

    pub(super) fn accept_image(&mut self, image: Image) -> Result<Option<RunEvent>, Breach> {
        self.spend_question(Breach::Limit(Limit::Output))?;
        Ok(Some(RunEvent::Image(image)))
    }
}
