//! THREAT[UP-1]: rmcp's transport over a child's stdin and stdout. rmcp has one; ours survives what servers
//! really send: lines without end, broken text, junk, and silence where reading should be.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use codexec_types::{Line, LineBuffer};
use rmcp::{
    RoleClient,
    model::{ClientNotification, ClientRequest, JsonRpcMessage, NumberOrString},
    service::TxJsonRpcMessage,
    transport::Transport,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, ChildStdout},
    sync::mpsc,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    connection::News,
    incoming::{InFlight, Message, read, too_long},
    process::Life,
    theirs::Theirs,
};

/// What may wait for a server that does not read.
const QUEUED_LINES: usize = 1_024;
const QUEUED_BYTES: usize = 32 << 20;
/// What a server may say that means nothing before we give up on it.
const JUNK_LINES: u32 = 10_000;
const JUNK_BYTES: u64 = 16 << 20;
const READ_BYTES: usize = 32 << 10;
/// What reading the rest of an ended process may take.
const LAST_READ: Duration = Duration::from_millis(50);

pub(super) struct Stdio {
    life: Arc<Life>,
    out: Option<mpsc::Sender<Vec<u8>>>,
    queued_bytes: Arc<AtomicUsize>,
    stdout: ChildStdout,
    chunk: Vec<u8>,
    lines: LineBuffer,
    line_bytes: usize,
    ready: VecDeque<Message>,
    in_flight: InFlight,
    junk_lines: u32,
    junk_bytes: u64,
    gone: CancellationToken,
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

impl Stdio {
    /// `gone` is cancelled when the server will say nothing more and all it said was delivered.
    pub(super) fn new(
        (stdin, stdout): (ChildStdin, ChildStdout),
        life: Arc<Life>,
        line_bytes: usize,
        gone: CancellationToken,
        news: News,
    ) -> Stdio {
        let (out, lines) = mpsc::channel(QUEUED_LINES);
        let queued_bytes = Arc::new(AtomicUsize::new(0));
        tokio::spawn(write(stdin, lines, queued_bytes.clone(), life.clone()));
        Stdio {
            life,
            out: Some(out),
            queued_bytes,
            stdout,
            chunk: vec![0; READ_BYTES],
            lines: LineBuffer::new(line_bytes),
            line_bytes,
            ready: VecDeque::new(),
            in_flight: InFlight { theirs: Theirs::new(news), ..InFlight::default() },
            junk_lines: 0,
            junk_bytes: 0,
            gone,
        }
    }

    fn enqueue(&mut self, item: &TxJsonRpcMessage<RoleClient>) -> Result<(), SendError> {
        self.write(item)?;
        self.note(item);
        Ok(())
    }

    fn write(&self, item: &impl serde::Serialize) -> Result<(), SendError> {
        let mut line = serde_json::to_vec(item).map_err(SendError::Unwritable)?;
        line.push(b'\n');
        let length = line.len();
        let out = self.out.as_ref().ok_or(SendError::Closed)?;
        let queued = self.queued_bytes.load(Ordering::Acquire);
        if queued > 0 && queued + length > QUEUED_BYTES {
            return Err(SendError::Backlog);
        }
        let place = out.try_reserve().map_err(|err| match err {
            mpsc::error::TrySendError::Full(()) => SendError::Backlog,
            mpsc::error::TrySendError::Closed(()) => SendError::Closed,
        })?;
        self.queued_bytes.fetch_add(length, Ordering::AcqRel);
        place.send(line);
        Ok(())
    }

    /// Keeps the books of what is in flight.
    fn note(&mut self, item: &TxJsonRpcMessage<RoleClient>) {
        match item {
            JsonRpcMessage::Request(request) => {
                let NumberOrString::Number(id) = request.id else { return };
                self.in_flight.ids.insert(id);
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    self.in_flight.initialize = Some(id);
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(NumberOrString::Number(id)) = &cancelled.params.request_id
                {
                    self.in_flight.ids.remove(id);
                }
            }
            JsonRpcMessage::Response(response) => self.answered(&response.id),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.answered(id);
                }
            }
        }
    }

    fn answered(&mut self, id: &NumberOrString) {
        let id = serde_json::to_string(id).unwrap_or_default();
        self.in_flight.theirs.answered(&id);
    }

    /// Takes what was read and turns it into messages; `false` when the junk is too much.
    fn take(&mut self, length: usize) -> bool {
        let read_bytes = self.chunk.get(..length).unwrap_or_default();
        self.lines.push(read_bytes);
        self.in_flight.theirs.refresh();
        while let Some(line) = self.lines.next_line() {
            match line {
                Line::Whole(line) => match read(&line, &mut self.in_flight) {
                    Some(messages) => {
                        self.junk_lines = 0;
                        self.junk_bytes = 0;
                        self.ready.extend(messages);
                    }
                    None => self.junk(line.len()),
                },
                // One long line is its callers' loss, not a reason to give up on the server.
                Line::TooLong { head } => {
                    self.junk(self.line_bytes);
                    self.ready.extend(too_long(&head, self.line_bytes, &mut self.in_flight));
                }
            }
        }
        for reply in self.in_flight.theirs.replies() {
            // A server that does not read its answers does not get them.
            let _ = self.write(&reply);
        }
        let is_bearable = self.junk_lines <= JUNK_LINES && self.junk_bytes <= JUNK_BYTES;
        if !is_bearable {
            self.life.condemn("its output is not MCP");
        }
        is_bearable
    }

    fn junk(&mut self, bytes: usize) {
        self.junk_lines += 1;
        self.junk_bytes += bytes as u64;
        tracing::debug!(pid = self.life.pid(), bytes, "skipped a line that is not a message");
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = SendError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        std::future::ready(self.enqueue(&item))
    }

    /// Safe to drop at its awaits: nothing is taken out of the pipe until it returns.
    async fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let read = tokio::select! {
                biased;
                read = self.stdout.read(&mut self.chunk) => read,
                // Somebody it started may still hold the pipe: what it said itself is there.
                () = self.life.over() => {
                    timeout(LAST_READ, self.stdout.read(&mut self.chunk)).await.unwrap_or(Ok(0))
                }
            };
            let goes_on = match read {
                Ok(0) | Err(_) => false,
                Ok(length) => self.take(length),
            };
            if !goes_on {
                self.gone.cancel();
                return None;
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), SendError>> + Send {
        self.out = None;
        self.gone.cancel();
        std::future::ready(Ok(()))
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

async fn write(
    mut stdin: ChildStdin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    queued_bytes: Arc<AtomicUsize>,
    life: Arc<Life>,
) {
    let stopping = life.stopping();
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            () = stopping.cancelled() => None,
        };
        let Some(line) = line else { return };
        let written = tokio::select! {
            written = stdin.write_all(&line) => written,
            () = stopping.cancelled() => return,
        };
        queued_bytes.fetch_sub(line.len(), Ordering::AcqRel);
        if written.is_err() {
            return;
        }
    }
}
