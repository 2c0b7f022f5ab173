//! A process's stdin. The caller writes each line itself; only what the pipe does not accept at
//! once is queued for a task.

use std::{
    collections::VecDeque,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{net::unix::pipe::Sender, process::ChildStdin, sync::Notify};

use super::process::ServerProcess;

/// Limits of the queue for a server that does not read.
const QUEUED_LINES: usize = 1_024;
const QUEUED_BYTES: usize = 12 << 20;
/// Of those, the limit for messages that may be dropped to leave space for calls.
const OFFERED_LINES: usize = 64;

pub(super) struct StdinWriter {
    state: Mutex<WriterState>,
    /// Notified when there is something to write, or nothing more to come.
    more: Notify,
}

struct WriterState {
    /// `None` once it is closed.
    pipe: Option<Arc<Sender>>,
    lines: VecDeque<Vec<u8>>,
    /// How much of the first line is written.
    written: usize,
    bytes: usize,
    is_closing: bool,
}

impl WriterState {
    /// THREAT[UP-11]: returns true if a line of this length exceeds the queue's limits.
    fn is_full(&self, bytes: usize) -> bool {
        self.lines.len() >= QUEUED_LINES || self.bytes + bytes > QUEUED_BYTES
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("the server does not read its stdin")]
    Backlog,
    #[error("the server's stdin is closed")]
    Closed,
    #[error("the request cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

impl StdinWriter {
    pub(super) fn new(
        stdin: ChildStdin,
        process: Arc<ServerProcess>,
    ) -> io::Result<Arc<StdinWriter>> {
        let pipe = Some(Arc::new(Sender::from_owned_fd(stdin.into_owned_fd()?)?));
        let lines = VecDeque::new();
        let state = WriterState { pipe, lines, written: 0, bytes: 0, is_closing: false };
        let writer = Arc::new(StdinWriter { state: Mutex::new(state), more: Notify::new() });
        tokio::spawn(write_queued(writer.clone(), process));
        Ok(writer)
    }

    pub(super) fn send(&self, message: &impl serde::Serialize) -> Result<(), SendError> {
        // Checked first, to avoid serializing a message that cannot be queued.
        if self.lock().is_full(0) {
            return Err(SendError::Backlog);
        }
        let mut line = serde_json::to_vec(message).map_err(SendError::Unwritable)?;
        line.push(b'\n');
        self.push(line)
    }

    /// Sends a message that may be lost: a server that does not read its answers does not get them.
    pub(super) fn offer(&self, message: &impl serde::Serialize) {
        if self.lock().lines.len() < OFFERED_LINES {
            let _ = self.send(message);
        }
    }

    /// Closes stdin after the queued lines are written.
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

    /// Writes as much of the queue as the pipe accepts. Returns the pipe if there is more.
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

    fn is_closed(&self) -> bool {
        self.lock().pipe.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes queued lines until stdin is closed or the process is stopped.
async fn write_queued(writer: Arc<StdinWriter>, process: Arc<ServerProcess>) {
    let writing = async {
        loop {
            while let Some(pipe) = writer.flush() {
                if pipe.writable().await.is_err() {
                    return;
                }
            }
            if writer.is_closed() {
                return;
            }
            writer.more.notified().await;
        }
    };
    tokio::select! {
        () = writing => {}
        () = process.stop_token().cancelled() => {}
        () = process.wait_ended() => {}
    }
    let mut state = writer.lock();
    state.lines.clear();
    state.pipe = None;
}

#[cfg(test)]
mod tests;
