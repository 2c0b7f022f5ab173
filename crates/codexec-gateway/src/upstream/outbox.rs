//! A process's standard input. A line is written where it is made, by whoever makes it; only what
//! the pipe does not take at once waits for a task of its own.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{net::unix::pipe::Sender, process::ChildStdin, sync::Notify};

use super::process::Life;

/// What may wait for a server that does not read.
const QUEUED_LINES: usize = 1_024;
const QUEUED_BYTES: usize = 12 << 20;
/// Of those, what we would rather lose than keep a call from its turn.
const OFFERED_LINES: usize = 64;

pub(super) struct Outbox {
    state: Mutex<State>,
    /// There is something to write, or nothing more to come.
    more: Notify,
}

struct State {
    /// `None` once it is closed.
    pipe: Option<Arc<Sender>>,
    lines: VecDeque<Vec<u8>>,
    /// What of the first line is written.
    written: usize,
    bytes: usize,
    is_closing: bool,
}

impl State {
    /// THREAT[UP-11]: whether a line of this length is more than may wait.
    fn is_full(&self, bytes: usize) -> bool {
        self.lines.len() >= QUEUED_LINES || self.bytes + bytes > QUEUED_BYTES
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("the server does not read its input")]
    Backlog,
    #[error("the server's input is closed")]
    Closed,
    #[error("the request has no JSON text")]
    Unwritable(#[source] serde_json::Error),
}

impl Outbox {
    pub(super) fn new(stdin: ChildStdin, life: Arc<Life>) -> io::Result<Arc<Outbox>> {
        let pipe = Some(Arc::new(Sender::from_owned_fd(stdin.into_owned_fd()?)?));
        let lines = VecDeque::new();
        let state = State { pipe, lines, written: 0, bytes: 0, is_closing: false };
        let outbox = Arc::new(Outbox { state: Mutex::new(state), more: Notify::new() });
        tokio::spawn(drain(outbox.clone(), life));
        Ok(outbox)
    }

    pub(super) fn send(&self, message: &impl serde::Serialize) -> Result<(), SendError> {
        // Not even made, where it could not wait.
        if self.lock().is_full(0) {
            return Err(SendError::Backlog);
        }
        let mut line = serde_json::to_vec(message).map_err(SendError::Unwritable)?;
        line.push(b'\n');
        self.push(line)
    }

    /// Sends what need not arrive: a server that does not read its answers does not get them.
    pub(super) fn offer(&self, message: &impl serde::Serialize) {
        if self.lock().lines.len() < OFFERED_LINES {
            let _ = self.send(message);
        }
    }

    /// Ends the input after what waits.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closing = true;
        if state.lines.is_empty() {
            state.pipe = None;
        }
        drop(state);
        self.more.notify_one();
    }

    fn push(&self, mut line: Vec<u8>) -> Result<(), SendError> {
        let mut state = self.lock();
        let pipe = state.pipe.clone().filter(|_| !state.is_closing).ok_or(SendError::Closed)?;
        let mut written = 0;
        if state.lines.is_empty() {
            match pipe.try_write(&line) {
                Ok(length) if length >= line.len() => return Ok(()),
                Ok(length) => written = length,
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(SendError::Closed),
            }
        } else if state.is_full(line.len()) {
            return Err(SendError::Backlog);
        }
        line.shrink_to_fit();
        if state.lines.is_empty() {
            state.written = written;
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        drop(state);
        self.more.notify_one();
        Ok(())
    }

    /// Writes what the pipe takes of what waits. The pipe, if there is more.
    fn flush(&self) -> Option<Arc<Sender>> {
        let mut state = self.lock();
        let pipe = state.pipe.clone()?;
        while let Some(line) = state.lines.front() {
            let length = line.len();
            match pipe.try_write(line.get(state.written..).unwrap_or_default()) {
                Ok(written) => state.written += written,
                Err(err) if err.kind() == io::ErrorKind::WouldBlock => return Some(pipe),
                Err(_) => {
                    state.lines.clear();
                    state.pipe = None;
                    return None;
                }
            }
            if state.written >= length {
                state.bytes -= length;
                state.written = 0;
                state.lines.pop_front();
            }
        }
        if state.is_closing {
            state.pipe = None;
        }
        None
    }

    fn is_over(&self) -> bool {
        self.lock().pipe.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what had to wait, until the input is closed or the process is to end.
async fn drain(outbox: Arc<Outbox>, life: Arc<Life>) {
    let writing = async {
        loop {
            while let Some(pipe) = outbox.flush() {
                if pipe.writable().await.is_err() {
                    return;
                }
            }
            if outbox.is_over() {
                return;
            }
            outbox.more.notified().await;
        }
    };
    tokio::select! {
        () = writing => {}
        () = life.stopping().cancelled() => {}
        () = life.over() => {}
    }
    let mut state = outbox.lock();
    state.lines.clear();
    state.pipe = None;
}
