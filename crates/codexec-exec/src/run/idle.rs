//! An idle session: between two cells its limits still apply.

use std::collections::VecDeque;
use std::time::Duration;

use codexec_types::{
    CallCode, CallError, FileChanges, FromGuest, Limit, Outcome, OutputStream, RunEvent,
};
use tokio::time::{Instant, sleep_until};

use super::{ProgramEvent, Run, RunState, SessionEnd, next_event, next_late_output};
use crate::frames::ReceivedFrame;
use crate::process_tree::TreeWatch;

/// Interval between two measurements of an idle session.
pub(super) const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum bytes kept of each stream.
const LATE_BYTES: usize = 32 << 10;

/// Output written between two cells, or by processes that an earlier cell left running.
#[derive(Default)]
pub(super) struct LateOutput {
    out: LateStream,
    err: LateStream,
}

/// The first bytes of one stream, and the number of bytes dropped after them.
#[derive(Default)]
struct LateStream {
    text: String,
    left_out_bytes: u64,
}

impl LateOutput {
    pub(super) fn push(&mut self, stream: OutputStream, text: &str) {
        let tail = match stream {
            OutputStream::Out => &mut self.out,
            OutputStream::Err => &mut self.err,
        };
        let free = LATE_BYTES.saturating_sub(tail.text.len());
        let (stored, rest) = text.split_at(text.floor_char_boundary(free));
        tail.text.push_str(stored);
        tail.left_out_bytes += rest.len() as u64;
    }

    /// THREAT[SES-2]: returns it as marked output at the start of the next cell.
    pub(super) fn take_since_last_reply(&mut self) -> VecDeque<RunEvent> {
        self.take_marked("[codexec] written after the last reply:\n", "[codexec] this reply:\n")
    }

    /// THREAT[SES-10]: returns it as marked output at the end of the cell that ran meanwhile.
    pub(super) fn take_meanwhile(&mut self) -> VecDeque<RunEvent> {
        self.take_marked("[codexec] written meanwhile by what earlier code left running:\n", "")
    }

    fn take_marked(&mut self, head: &str, end: &str) -> VecDeque<RunEvent> {
        let LateOutput { out, err } = std::mem::take(self);
        let both = [(OutputStream::Out, out), (OutputStream::Err, err)].into_iter();
        let event = |(stream, tail): (OutputStream, LateStream)| {
            let text = tail.format_marked(head, end)?;
            Some(RunEvent::Output { stream, text })
        };
        both.filter_map(event).collect()
    }
}

impl LateStream {
    fn format_marked(self, head: &str, end: &str) -> Option<String> {
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
    /// Watches an idle session, and returns when it has ended. Cancel-safe: dropped when there is a
    /// cell to send.
    pub async fn watch_idle(&mut self) -> SessionEnd {
        loop {
            match &self.state {
                RunState::Ended(_) => match self.session_end() {
                    Some(over) => return over,
                    None => self.wait_while_idle().await,
                },
                RunState::Dying(..) => self.wait_for_death().await,
                RunState::Running | RunState::Stopping(..) => std::future::pending().await,
            }
        }
    }

    /// Ends a session, and returns its changes to the directory since the last reply. Nothing of the
    /// session is left afterwards.
    pub async fn close(&mut self) -> FileChanges {
        if let Some(session) = &mut self.session {
            session.end.get_or_insert(SessionEnd::Closed);
        }
        if self.busy.is_some() {
            self.state = RunState::Dying(Some(Outcome::Cancelled), None);
            self.wait_for_death().await;
        }
        self.commit_rest().await
    }

    /// Returns the memory that the session held at the end of the last cell, or when it was opened.
    pub fn memory_bytes(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.memory_bytes)
    }

    /// Returns the host process id of the guest's first process, or of its closest known ancestor.
    pub fn pid(&self) -> Option<i32> {
        self.busy.as_ref().and(self.roots.last().copied())
    }

    /// Measures the session. Usage of the next cell, or of the idle period, is counted from here.
    pub(super) fn start_counting(&mut self) {
        let Some(session) = &self.session else { return };
        let settled = self.watch.as_ref().and_then(TreeWatch::measure_if_settled);
        let (used, held_bytes) = match (&self.program, settled) {
            (None, _) => {
                let used = session.roots.measure();
                (used, used.memory_bytes)
            }
            (Some(_), Some(used)) => (used, used.memory_bytes),
            (Some(_), None) => {
                let own_bytes = session.roots.measure().memory_bytes;
                let used = self.measure();
                // Unlike the meter, this includes what every guest of the language holds from the
                // start.
                (used, used.memory_bytes.max(own_bytes))
            }
        };
        let Some(session) = &mut self.session else { return };
        let cpu = used.cpu.saturating_sub(session.cpu_before);
        self.usage.cpu = self.usage.cpu.max(cpu);
        self.usage.peak_memory_bytes = self.usage.peak_memory_bytes.max(used.memory_bytes);
        session.cpu_before = used.cpu;
        session.memory_bytes = held_bytes;
        session.measured_at = Some(Instant::now());
    }

    /// Stores what is in the pipes before a cell starts, because it is not the cell's output.
    pub(super) fn collect_late_output(&mut self) {
        let (Some(program), Some(session)) = (&mut self.program, &mut self.session) else { return };
        for (stream, text) in session.earlier.read_available() {
            session.late_output.push(stream, &text);
        }
        session.late_output.push(OutputStream::Out, &program.out.read_available().0);
        session.late_output.push(OutputStream::Err, &program.err.read_available().0);
    }

    pub(super) fn store_late_output(&mut self, stream: OutputStream, text: &str) {
        if let Some(session) = &mut self.session {
            session.late_output.push(stream, text);
        }
    }

    async fn wait_while_idle(&mut self) {
        match self.inbox.take() {
            Ok(Some(frame)) => return self.accept_idle(frame),
            Ok(None) => {}
            Err(_) => return self.end_for_bad_frame(),
        }
        let (is_program, has_answers) = (self.program.is_some(), !self.outbox.is_empty());
        tokio::select! {
            read = self.inbox.fill(), if !self.is_socket_closed => match read {
                Ok(true) if self.inbox.is_flooded() => self.end_for_bad_frame(),
                Ok(true) => {}
                Ok(false) | Err(_) if is_program => self.is_socket_closed = true,
                Ok(false) | Err(_) => self.note_exit(None),
            },
            written = self.outbox.drain(), if has_answers => if written.is_err() {
                self.outbox.clear();
            },
            event = next_event(&mut self.busy, &mut self.program), if is_program => match event {
                ProgramEvent::Written(stream, text, _) => self.store_late_output(stream, &text),
                ProgramEvent::Streams(out, err) => self.take_streams(out, err),
                ProgramEvent::Ended(status) => self.note_exit(status),
            },
            (stream, text) = next_late_output(&mut self.session) => {
                self.store_late_output(stream, &text);
            }
            () = sleep_until(self.next_check), if is_program => self.check_idle_limits(),
        }
    }

    /// THREAT[RES-2]: background threads of an idle session have the same limits.
    fn check_idle_limits(&mut self) {
        self.next_check = Instant::now() + IDLE_CHECK_INTERVAL;
        let used = self.measure();
        let before = self.session.as_ref().map_or(Duration::ZERO, |session| session.cpu_before);
        if used.cpu.saturating_sub(before) > self.limits.cpu {
            self.end(Outcome::Stopped(Limit::Cpu));
        }
    }

    /// Handles a frame that arrives while no cell runs. Asks are refused.
    fn accept_idle(&mut self, received: ReceivedFrame) {
        let Some(left) = self.questions_left.checked_sub(1) else {
            return self.end_for_bad_frame();
        };
        self.questions_left = left;
        let frame = match received {
            ReceivedFrame::Frame(frame) | ReceivedFrame::Ask(frame, _) => frame,
            ReceivedFrame::Refused(id, error) => return self.refuse(id, error),
        };
        match frame {
            FromGuest::Ask { id, .. } => {
                let message = "tools can only be called while a cell runs";
                self.refuse(id, CallError::new(CallCode::UpstreamError, message));
            }
            FromGuest::Output { stream, text } => self.store_late_output(stream, &text),
            FromGuest::Compiled
            | FromGuest::Progress(_)
            | FromGuest::Image(_)
            | FromGuest::CellEnded { .. } => {}
            FromGuest::Returned(_) | FromGuest::Threw(_) => self.end_for_bad_frame(),
        }
    }
}

#[cfg(test)]
mod tests;
