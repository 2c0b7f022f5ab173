//! A session between two cells: nobody waits for it, and it is watched all the same.

use std::collections::VecDeque;
use std::time::Duration;

use codexec_types::{CallCode, CallError, Changes, Event, FromGuest, Limit, Outcome, Stream};
use tokio::time::{Instant, sleep_until};

use super::{Heard, Over, Run, State, heard, written_late};
use crate::watch::Watch;
use crate::wire::Received;

/// How often a session is looked at while nobody uses it.
pub(super) const IDLE_LOOK: Duration = Duration::from_secs(1);
/// What is kept of each stream.
const LATE_BYTES: usize = 32 << 10;

/// What was written while no cell ran, or by what an earlier cell has left.
#[derive(Default)]
pub(super) struct Late {
    out: Tail,
    err: Tail,
}

/// Of one stream.
#[derive(Default)]
struct Tail {
    text: String,
    left_out_bytes: u64,
}

impl Late {
    pub(super) fn push(&mut self, stream: Stream, text: &str) {
        let tail = match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        let room = LATE_BYTES.saturating_sub(tail.text.len());
        let (kept, rest) = text.split_at(text.floor_char_boundary(room));
        tail.text.push_str(kept);
        tail.left_out_bytes += rest.len() as u64;
    }

    /// THREAT[SES-2]: as the first of the next cell's output, and marked as what it is.
    pub(super) fn take(&mut self) -> VecDeque<Event> {
        self.take_marked("[codexec] written after the last reply:\n", "[codexec] this reply:\n")
    }

    /// THREAT[SES-10]: as the last of a cell's output, where it came while the cell ran.
    pub(super) fn take_meanwhile(&mut self) -> VecDeque<Event> {
        self.take_marked("[codexec] written meanwhile by what earlier code left running:\n", "")
    }

    fn take_marked(&mut self, head: &str, end: &str) -> VecDeque<Event> {
        let Late { out, err } = std::mem::take(self);
        let both = [(Stream::Out, out), (Stream::Err, err)].into_iter();
        let event = |(stream, tail): (Stream, Tail)| {
            let text = tail.marked(head, end)?;
            Some(Event::Output { stream, text })
        };
        both.filter_map(event).collect()
    }
}

impl Tail {
    fn marked(self, head: &str, end: &str) -> Option<String> {
        if self.text.is_empty() {
            return None;
        }
        let mut text = format!("{head}{}", self.text);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if self.left_out_bytes > 0 {
            text.push_str(&format!("[codexec] and {} bytes more\n", self.left_out_bytes));
        }
        text.push_str(end);
        Some(text)
    }
}

impl Run {
    /// Watches a session in which no cell runs, and returns when it is over. Cancel-safe: it is
    /// given up when there is a cell to send.
    pub async fn idle(&mut self) -> Over {
        loop {
            match &self.state {
                State::Ended(_) => match self.is_over() {
                    Some(over) => return over,
                    None => self.rest().await,
                },
                State::Dying(..) => self.see_death().await,
                State::Running | State::Asked(..) => std::future::pending().await,
            }
        }
    }

    /// Ends a session, and returns when nothing of it is left: what it did to its directory since
    /// the last reply.
    pub async fn close(&mut self) -> Changes {
        if let Some(kept) = &mut self.kept {
            kept.over.get_or_insert(Over::Closed);
        }
        if self.busy.is_some() {
            self.state = State::Dying(Some(Outcome::Cancelled), None);
            self.see_death().await;
        }
        self.commit_rest().await
    }

    /// What its processes held at the end of the last cell, or when it was opened.
    pub fn memory_bytes(&self) -> u64 {
        self.kept.as_ref().map_or(0, |kept| kept.memory_bytes)
    }

    /// The guest's first process as the host knows it, or the one nearest above it.
    pub fn pid(&self) -> Option<i32> {
        self.busy.as_ref().and(self.roots.last().copied())
    }

    /// From here on, for a cell or for the time without one.
    pub(super) fn start_counting(&mut self) {
        let Some(kept) = &self.kept else { return };
        let settled = self.watch.as_ref().and_then(Watch::used_if_settled);
        let (used, held_bytes) = match (&self.home, settled) {
            (None, _) => {
                let used = kept.roots.used();
                (used, used.memory_bytes)
            }
            (Some(_), Some(used)) => (used, used.memory_bytes),
            (Some(_), None) => {
                let own_bytes = kept.roots.used().memory_bytes;
                let used = self.used();
                // Limits leave out what every guest of a language has from the start.
                (used, used.memory_bytes.max(own_bytes))
            }
        };
        let Some(kept) = &mut self.kept else { return };
        let cpu = used.cpu.saturating_sub(kept.cpu_before);
        self.usage.cpu = self.usage.cpu.max(cpu);
        self.usage.peak_memory_bytes = self.usage.peak_memory_bytes.max(used.memory_bytes);
        kept.cpu_before = used.cpu;
        kept.memory_bytes = held_bytes;
        kept.looked = Some(Instant::now());
    }

    /// What is in the pipes before a cell begins is not the cell's.
    pub(super) fn hear_late_output(&mut self) {
        let (Some(home), Some(kept)) = (&mut self.home, &mut self.kept) else { return };
        for (stream, text) in kept.earlier.read_waiting() {
            kept.late.push(stream, &text);
        }
        kept.late.push(Stream::Out, &home.out.read_waiting().0);
        kept.late.push(Stream::Err, &home.err.read_waiting().0);
    }

    pub(super) fn keep_late(&mut self, stream: Stream, text: &str) {
        if let Some(kept) = &mut self.kept {
            kept.late.push(stream, text);
        }
    }

    async fn rest(&mut self) {
        match self.inbox.take() {
            Ok(Some(frame)) => return self.accept_idle(frame),
            Ok(None) => {}
            Err(_) => return self.babbled(),
        }
        let (is_program, has_answers) = (self.home.is_some(), !self.outbox.is_empty());
        tokio::select! {
            read = self.inbox.fill(), if !self.is_mute => match read {
                Ok(true) if self.inbox.is_flooded() => self.babbled(),
                Ok(true) => {}
                Ok(false) | Err(_) if is_program => self.is_mute = true,
                Ok(false) | Err(_) => self.died(None),
            },
            written = self.outbox.drain(), if has_answers => if written.is_err() {
                self.outbox.clear();
            },
            heard = heard(&mut self.busy, &mut self.home), if is_program => match heard {
                Heard::Written(stream, text, _) => self.keep_late(stream, &text),
                Heard::Streams(out, err) => self.take_streams(out, err),
                Heard::Ended(status) => self.died(status),
            },
            (stream, text) = written_late(&mut self.kept) => self.keep_late(stream, &text),
            () = sleep_until(self.next_look), if is_program => self.look_at_idle(),
        }
    }

    /// THREAT[RES-2]: threads that work on while nobody waits are held to the same limits.
    fn look_at_idle(&mut self) {
        self.next_look = Instant::now() + IDLE_LOOK;
        let used = self.used();
        let before = self.kept.as_ref().map_or(Duration::ZERO, |kept| kept.cpu_before);
        if used.cpu.saturating_sub(before) > self.limits.cpu {
            self.end(Outcome::Stopped(Limit::Cpu));
        }
    }

    /// Nobody is there who could answer, and what is said now belongs to no cell.
    fn accept_idle(&mut self, received: Received) {
        let Some(left) = self.questions_left.checked_sub(1) else { return self.babbled() };
        self.questions_left = left;
        let frame = match received {
            Received::Frame(frame) | Received::Ask(frame, _) => frame,
            Received::Refused(id, error) => return self.refuse(id, error),
        };
        match frame {
            FromGuest::Ask { id, .. } => {
                let message = "tools can be called while a cell runs, and none does";
                self.refuse(id, CallError::new(CallCode::UpstreamError, message));
            }
            FromGuest::Output { stream, text } => self.keep_late(stream, &text),
            FromGuest::Compiled
            | FromGuest::Progress(_)
            | FromGuest::Image(_)
            | FromGuest::CellEnded { .. } => {}
            FromGuest::Returned(_) | FromGuest::Threw(_) => self.babbled(),
        }
    }
}

#[cfg(test)]
mod tests;
