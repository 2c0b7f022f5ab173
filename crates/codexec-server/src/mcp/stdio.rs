//! The client's pipe: parses lines of limited length, writes whole lines, and answers every
//! request.

use std::io;
use std::sync::Arc;

use codexec_types::{BufferedLine, LineBuffer, find_first_field};
use rmcp::RoleServer;
use rmcp::model::{JsonRpcMessage, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::{StdioReader, StdioWriter, Transport, stdio_pipes};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// THREAT[CL-1]: longer lines are discarded as they arrive.
const MAX_LINE_BYTES: usize = 8 << 20;
const READ_BYTES: usize = 64 << 10;
/// Maximum number of lines in the write queue, and their total size.
const MAX_QUEUED_LINES: usize = 256;
const MAX_QUEUED_KIB: u32 = 32 << 10;
/// With more queued lines, the client is slow, and gets no progress notifications.
const SLOW_CLIENT_LINES: usize = 8;

/// A queued line, with its share of the queue's size limit.
struct QueuedLine {
    line: Vec<u8>,
    _permit: OwnedSemaphorePermit,
}

pub(super) struct ClientPipe {
    reader: StdioReader,
    buffer: LineBuffer,
    read: Vec<u8>,
    lines: Option<mpsc::Sender<QueuedLine>>,
    free_kib: Arc<Semaphore>,
    writer: Option<JoinHandle<()>>,
    /// Cancelled when the client has closed its end.
    disconnected: CancellationToken,
}

impl ClientPipe {
    /// Takes stdin and stdout. Cancels `disconnected` at the end of stdin.
    pub(super) fn open(disconnected: CancellationToken) -> ClientPipe {
        let (reader, writer) = stdio_pipes();
        let (lines, queue) = mpsc::channel(MAX_QUEUED_LINES);
        ClientPipe {
            reader,
            buffer: LineBuffer::new(MAX_LINE_BYTES),
            read: Vec::with_capacity(READ_BYTES),
            lines: Some(lines),
            free_kib: Arc::new(Semaphore::new(MAX_QUEUED_KIB as usize)),
            writer: Some(tokio::spawn(write_lines(writer, queue))),
            disconnected,
        }
    }

    /// Parses a line. An invalid one is answered here.
    async fn parse_line(&mut self, line: BufferedLine) -> Option<RxJsonRpcMessage<RoleServer>> {
        let bytes = match line {
            BufferedLine::Whole(bytes) if bytes.trim_ascii().is_empty() => return None,
            BufferedLine::Whole(bytes) => bytes,
            BufferedLine::TooLong { head } => {
                let why = format!("the message is longer than {MAX_LINE_BYTES} bytes");
                self.answer(&refuse_request(&head, -32_600, &why)).await;
                return None;
            }
        };
        match serde_json::from_slice(&bytes) {
            Ok(message) => Some(message),
            Err(error) => {
                self.answer(&explain_parse_error(&bytes, &error)).await;
                None
            }
        }
    }

    async fn answer(&mut self, message: &Value) {
        if let Some(lines) = &self.lines {
            let mut line = message.to_string().into_bytes();
            line.push(b'\n');
            // A disconnected client is detected by the reader.
            let _ = enqueue(lines, &self.free_kib, line).await;
        }
    }
}

impl Transport<RoleServer> for ClientPipe {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let (lines, free_kib) = (self.lines.clone(), Arc::clone(&self.free_kib));
        // THREAT[ORD-5]: a slow client gets only its responses, not its progress notifications.
        let is_slow = lines
            .as_ref()
            .is_some_and(|lines| lines.capacity() + SLOW_CLIENT_LINES < MAX_QUEUED_LINES);
        let line = (!(is_slow && is_progress(&item))).then(|| serde_json::to_vec(&item));
        async move {
            let Some(line) = line else { return Ok(()) };
            let mut line = line?;
            line.push(b'\n');
            let lines = lines.ok_or(io::ErrorKind::BrokenPipe)?;
            enqueue(&lines, &free_kib, line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            while let Some(line) = self.buffer.next_line() {
                if let Some(message) = self.parse_line(line).await {
                    return Some(message);
                }
            }
            self.read.clear();
            match self.reader.read_buf(&mut self.read).await {
                Ok(0) | Err(_) => {
                    self.disconnected.cancel();
                    return None;
                }
                Ok(_) => self.buffer.push(&self.read),
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.await;
        }
        Ok(())
    }
}

async fn enqueue(
    lines: &mpsc::Sender<QueuedLine>,
    free_kib: &Arc<Semaphore>,
    line: Vec<u8>,
) -> io::Result<()> {
    let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
    let kib = u32::try_from(line.len() >> 10).unwrap_or(MAX_QUEUED_KIB).clamp(1, MAX_QUEUED_KIB);
    let permit = Arc::clone(free_kib).acquire_many_owned(kib).await.map_err(|_| closed())?;
    lines.send(QueuedLine { line, _permit: permit }).await.map_err(|_| closed())
}

fn is_progress(item: &TxJsonRpcMessage<RoleServer>) -> bool {
    let JsonRpcMessage::Notification(told) = item else { return false };
    matches!(told.notification, ServerNotification::ProgressNotification(_))
}

async fn write_lines(mut writer: StdioWriter, mut queue: mpsc::Receiver<QueuedLine>) {
    while let Some(QueuedLine { line, _permit }) = queue.recv().await {
        if writer.write_all(&line).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

/// Returns the response to a line that is not a valid message.
pub(super) fn explain_parse_error(line: &[u8], error: &serde_json::Error) -> Value {
    let is_strict = serde_json::from_slice::<Value>(line).is_ok();
    match codexec_types::parse_lenient_json(line) {
        Ok(Value::Array(_)) => error_response(
            &Value::Null,
            -32_600,
            "a batch is not supported; send one message a line",
        ),
        Ok(value) if value.get("method").is_none() => error_response(
            value.get("id").unwrap_or(&Value::Null),
            -32_600,
            "the message has no method",
        ),
        Ok(_) if is_strict => {
            refuse_request(line, -32_600, &format!("the message is not a request: {error}"))
        }
        Ok(_) => {
            let why = "the request is not valid UTF-8, or has half a surrogate pair in a string; \
                       send whole characters";
            refuse_request(line, -32_600, why)
        }
        Err(error) => refuse_request(line, -32_700, &format!("the message is not JSON: {error}")),
    }
}

/// Refuses the request at the beginning of a line: a tool call with a result that the agent reads,
/// anything else with an error. Without an answer, the client would wait forever.
fn refuse_request(head: &[u8], code: i32, why: &str) -> Value {
    let id = read_head_field(head, "id");
    if id.is_null() || read_head_field(head, "method") != "tools/call" {
        return error_response(&id, code, why);
    }
    let text = format!("INVALID_ARGS: {why}");
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Reads a field at the beginning of a line that may be truncated; null if it is missing.
fn read_head_field(head: &[u8], name: &str) -> Value {
    let Some((_, value)) = find_first_field(head, &[name]) else { return Value::Null };
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Value>();
    match values.next() {
        Some(Ok(value @ (Value::String(_) | Value::Number(_)))) => value,
        Some(_) | None => Value::Null,
    }
}

fn error_response(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests;
