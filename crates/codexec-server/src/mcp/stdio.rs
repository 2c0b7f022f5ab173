//! The client's pipe: bounded lines in, whole lines out, an answer to everything.

use std::io;

use codexec_types::{Line, LineBuffer, first_field};
use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::{StdioReader, StdioWriter, Transport, stdio_pipes};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// THREAT[CL-1]: a longer line is dropped while it arrives.
const MAX_LINE_BYTES: usize = 8 << 20;
const READ_BYTES: usize = 64 << 10;
/// Lines that wait to be written.
const QUEUE: usize = 256;

pub(super) struct ClientPipe {
    reader: StdioReader,
    buffer: LineBuffer,
    read: Vec<u8>,
    lines: Option<mpsc::Sender<Vec<u8>>>,
    writer: Option<JoinHandle<()>>,
    /// Cancelled when the client has closed its end.
    left: CancellationToken,
}

impl ClientPipe {
    /// Takes standard input and output. Cancels `left` when the client sends nothing more.
    pub(super) fn open(left: CancellationToken) -> ClientPipe {
        let (reader, writer) = stdio_pipes();
        let (lines, queue) = mpsc::channel(QUEUE);
        ClientPipe {
            reader,
            buffer: LineBuffer::new(MAX_LINE_BYTES),
            read: Vec::with_capacity(READ_BYTES),
            lines: Some(lines),
            writer: Some(tokio::spawn(write(writer, queue))),
            left,
        }
    }

    /// The message in a line; what cannot be read is answered here.
    async fn understand(&mut self, line: Line) -> Option<RxJsonRpcMessage<RoleServer>> {
        let bytes = match line {
            Line::Whole(bytes) if bytes.trim_ascii().is_empty() => return None,
            Line::Whole(bytes) => bytes,
            Line::TooLong { head } => {
                let why = format!("the message is longer than {MAX_LINE_BYTES} bytes");
                self.answer(&refusal(&head, -32_600, &why)).await;
                return None;
            }
        };
        match serde_json::from_slice(&bytes) {
            Ok(message) => Some(message),
            Err(error) => {
                self.answer(&explain(&bytes, &error)).await;
                None
            }
        }
    }

    async fn answer(&mut self, message: &Value) {
        if let Some(lines) = &self.lines {
            let mut line = message.to_string().into_bytes();
            line.push(b'\n');
            // A client that is gone is noticed by reading.
            let _ = lines.send(line).await;
        }
    }
}

impl Transport<RoleServer> for ClientPipe {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let line = serde_json::to_vec(&item);
        let lines = self.lines.clone();
        async move {
            let mut line = line?;
            line.push(b'\n');
            let lines = lines.ok_or(io::ErrorKind::BrokenPipe)?;
            lines.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            while let Some(line) = self.buffer.next_line() {
                if let Some(message) = self.understand(line).await {
                    return Some(message);
                }
            }
            self.read.clear();
            match self.reader.read_buf(&mut self.read).await {
                Ok(0) | Err(_) => {
                    self.left.cancel();
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

async fn write(mut writer: StdioWriter, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        if writer.write_all(&line).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

/// The answer to a line that is not a message.
fn explain(line: &[u8], error: &serde_json::Error) -> Value {
    let is_strict = serde_json::from_slice::<Value>(line).is_ok();
    match codexec_types::lenient_json(line) {
        Ok(Value::Array(_)) => {
            complaint(&Value::Null, -32_600, "a batch is not supported; send one message a line")
        }
        Ok(value) if value.get("method").is_none() => {
            complaint(value.get("id").unwrap_or(&Value::Null), -32_600, "the message has no method")
        }
        Ok(_) if is_strict => {
            refusal(line, -32_600, &format!("the message is not a request: {error}"))
        }
        Ok(_) => {
            let why = "the request is not valid UTF-8, or has half a surrogate pair in a string; \
                       send whole characters";
            refusal(line, -32_600, why)
        }
        Err(error) => refusal(line, -32_700, &format!("the message is not JSON: {error}")),
    }
}

/// Refuses the request that a line begins: a tool call by a result that the agent reads, anything
/// else by an error. A client that is never told would wait for ever.
fn refusal(head: &[u8], code: i32, why: &str) -> Value {
    let id = field(head, "id");
    if id.is_null() || field(head, "method") != "tools/call" {
        return complaint(&id, code, why);
    }
    let text = format!("INVALID_ARGS: {why}");
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true});
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// A field at the beginning of a line of which the rest may be missing; null when there is none.
fn field(head: &[u8], name: &str) -> Value {
    let Some((_, value)) = first_field(head, &[name]) else { return Value::Null };
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Value>();
    match values.next() {
        Some(Ok(value @ (Value::String(_) | Value::Number(_)))) => value,
        Some(_) | None => Value::Null,
    }
}

fn complaint(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests;
