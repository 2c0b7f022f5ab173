//! THREAT[UP-1]: rmcp's transport over a child's stdin and stdout. rmcp has its own; this one
//! survives what servers really send: endless lines, invalid UTF-8, junk, and servers that stop
//! reading.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use codexec_types::{BufferedLine, LineBuffer};
use rmcp::{
    RoleClient,
    model::{ClientNotification, ClientRequest, JsonRpcMessage, NumberOrString},
    service::TxJsonRpcMessage,
    transport::Transport,
};
use tokio::{
    io::AsyncReadExt,
    process::ChildStdout,
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    call_pipe::CallPipe,
    incoming::{InFlight, Message, ParsedLine, fail_oversized_line, parse_line, read_parsed_line},
    process::ServerProcess,
    server_events::ServerEvents,
    server_messages::ServerMessages,
    stdin_writer::{SendError, StdinWriter},
};

/// The limits on junk before the server is killed.
const JUNK_LINES: u32 = 10_000;
const JUNK_BYTES: u64 = 16 << 20;
const READ_BYTES: usize = 32 << 10;
/// Longer lines are parsed on a blocking thread.
const LONG_BYTES: usize = 64 << 10;
/// The time limit for reading the rest of an ended process's output.
const LAST_READ: Duration = Duration::from_millis(50);

pub(super) struct StdioTransport {
    process: Arc<ServerProcess>,
    stdin: Arc<StdinWriter>,
    stdout: ChildStdout,
    chunk: Vec<u8>,
    lines: LineBuffer,
    line_bytes: usize,
    ready: VecDeque<Message>,
    /// A long line being parsed. Later lines wait for it.
    parsing: Option<JoinHandle<(Vec<u8>, ParsedLine)>>,
    in_flight: InFlight,
    junk_lines: u32,
    junk_bytes: u64,
    closed: CancellationToken,
}

impl StdioTransport {
    /// `closed` is cancelled when the server will send nothing more and everything was delivered.
    pub(super) fn new(
        (call_pipe, stdout): (&CallPipe, ChildStdout),
        process: Arc<ServerProcess>,
        line_bytes: usize,
        closed: CancellationToken,
        server_events: ServerEvents,
    ) -> StdioTransport {
        StdioTransport {
            process,
            stdin: call_pipe.stdin.clone(),
            stdout,
            chunk: vec![0; READ_BYTES],
            lines: LineBuffer::new(line_bytes),
            line_bytes,
            ready: VecDeque::new(),
            parsing: None,
            in_flight: InFlight::new(call_pipe.pending.clone(), ServerMessages::new(server_events)),
            junk_lines: 0,
            junk_bytes: 0,
            closed,
        }
    }

    fn enqueue(&mut self, item: &TxJsonRpcMessage<RoleClient>) -> Result<(), SendError> {
        self.stdin.send(item)?;
        self.track(item);
        Ok(())
    }

    /// Tracks requests in flight.
    fn track(&mut self, item: &TxJsonRpcMessage<RoleClient>) {
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
            JsonRpcMessage::Response(response) => self.mark_answered(&response.id),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.mark_answered(id);
                }
            }
        }
    }

    fn mark_answered(&mut self, id: &NumberOrString) {
        let id = serde_json::to_string(id).unwrap_or_default();
        self.in_flight.server_messages.mark_answered(&id);
    }

    /// Converts received lines to messages, up to a line that takes long to parse. Returns false if
    /// there was too much junk.
    fn process_lines(&mut self) -> bool {
        self.in_flight.server_messages.reset_limits();
        while self.parsing.is_none()
            && let Some(line) = self.lines.next_line()
        {
            match line {
                BufferedLine::Whole(line) if line.len() > LONG_BYTES => {
                    self.parsing = Some(spawn_blocking(move || {
                        let parsed = parse_line(&line);
                        (line, parsed)
                    }));
                }
                BufferedLine::Whole(line) => {
                    let parsed = parse_line(&line);
                    self.process_line(&line, parsed);
                }
                // An oversized line fails its own call, not the server.
                BufferedLine::TooLong { head } => {
                    self.count_junk(self.line_bytes);
                    self.ready.extend(fail_oversized_line(
                        &head,
                        self.line_bytes,
                        &mut self.in_flight,
                    ));
                }
            }
        }
        for reply in self.in_flight.server_messages.take_replies() {
            self.stdin.offer(&reply);
        }
        let is_tolerable = self.junk_lines <= JUNK_LINES && self.junk_bytes <= JUNK_BYTES;
        if !is_tolerable {
            self.process.kill_because("its output is not MCP");
        }
        is_tolerable
    }

    fn process_line(&mut self, line: &[u8], parsed: ParsedLine) {
        match read_parsed_line(line, parsed, &mut self.in_flight) {
            Some(messages) => {
                self.junk_lines = 0;
                self.junk_bytes = 0;
                self.ready.extend(messages);
            }
            None => self.count_junk(line.len()),
        }
    }

    /// Waits for a long line to be parsed and handles it. Cancel-safe.
    async fn finish_line(&mut self) {
        let Some(parsing) = &mut self.parsing else { return };
        let parsed = parsing.await;
        self.parsing = None;
        if let Ok((line, parsed)) = parsed {
            self.process_line(&line, parsed);
        }
    }

    fn count_junk(&mut self, bytes: usize) {
        self.junk_lines += 1;
        self.junk_bytes += bytes as u64;
        tracing::debug!(pid = self.process.pid(), bytes, "skipped a line that is not a message");
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = SendError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        std::future::ready(self.enqueue(&item))
    }

    /// Cancel-safe: nothing is taken from the pipe until it returns.
    async fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.parsing.is_some() {
                self.finish_line().await;
                if !self.process_lines() {
                    self.closed.cancel();
                    return None;
                }
                continue;
            }
            let read = tokio::select! {
                biased;
                read = self.stdout.read(&mut self.chunk) => read,
                // A descendant may still hold the pipe, but the server's own output is already in
                // it.
                () = self.process.wait_ended() => {
                    timeout(LAST_READ, self.stdout.read(&mut self.chunk)).await.unwrap_or(Ok(0))
                }
            };
            let goes_on = match read {
                Ok(0) | Err(_) => false,
                Ok(length) => {
                    self.lines.push(self.chunk.get(..length).unwrap_or_default());
                    self.process_lines()
                }
            };
            if !goes_on {
                self.closed.cancel();
                return None;
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), SendError>> + Send {
        self.stdin.close();
        self.closed.cancel();
        std::future::ready(Ok(()))
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.stdin.close();
        self.closed.cancel();
    }
}
