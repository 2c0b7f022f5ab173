use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use codexec_types::OutputStream;
use tokio::io::{AsyncRead as _, AsyncReadExt as _, ReadBuf};
use tokio::net::unix::pipe;

const READ_BYTES: usize = 64 << 10;
/// Short reads are enough for most cells.
const SHORT_READ_BYTES: usize = 4 << 10;
/// Upper bound of a pipe's capacity.
const PIPE_BYTES: usize = 1 << 20;

/// An output stream of a guest, decoded as UTF-8. A character may arrive in two reads; invalid bytes become U+FFFD.
pub(crate) struct OutputPipe {
    pipe: pipe::Receiver,
    /// The first bytes of an incomplete character.
    pending: Vec<u8>,
    has_ended: bool,
}

impl OutputPipe {
    pub(crate) fn new(pipe: pipe::Receiver) -> OutputPipe {
        OutputPipe { pipe, pending: Vec::new(), has_ended: false }
    }

    /// Creates an output and its write end, which blocks like an ordinary stdout.
    pub(crate) fn with_sender() -> io::Result<(OutputPipe, OwnedFd)> {
        let (sender, receiver) = pipe::pipe()?;
        Ok((OutputPipe::new(receiver), sender.into_blocking_fd()?))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Reads the next text, and its length in bytes. A failed read ends the stream. Cancel-safe.
    async fn read(&mut self) -> (String, u64) {
        let mut bytes = Vec::with_capacity(READ_BYTES);
        let count = self.pipe.read_buf(&mut bytes).await.unwrap_or(0);
        if count == 0 {
            self.has_ended = true;
            let rest = std::mem::take(&mut self.pending);
            return (String::from_utf8_lossy(&rest).into_owned(), 0);
        }
        (self.decode(&bytes), count as u64)
    }

    /// Reads the next piece of text.
    pub(crate) fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<String> {
        let mut bytes = [0; 4096];
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = Pin::new(&mut self.pipe).poll_read(context, &mut buffer);
        read.map(|read| match (read, buffer.filled()) {
            (Err(_), _) | (Ok(()), []) => {
                self.has_ended = true;
                String::new()
            }
            (Ok(()), bytes) => self.decode(bytes),
        })
    }

    /// Returns everything written so far, and its length in bytes. Does not wait, and reads at most
    /// one full pipe if the guest keeps writing. Ignores the runtime's readiness state, which may be
    /// older than a frame that was received after the text was written.
    pub(crate) fn read_available(&mut self) -> (String, u64) {
        let (mut bytes, mut short) = (Vec::new(), [0; SHORT_READ_BYTES]);
        while !self.has_ended && bytes.len() < PIPE_BYTES {
            match rustix::io::read(&self.pipe, &mut short) {
                Ok(0) => self.has_ended = true,
                Ok(count) => {
                    bytes.extend_from_slice(short.get(..count).unwrap_or_default());
                    // A pipe fills the buffer unless it is empty.
                    if count < SHORT_READ_BYTES {
                        break;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let count = bytes.len() as u64;
        match (bytes.is_empty(), self.has_ended) {
            (true, false) => (String::new(), 0),
            (false, false) => (self.decode(&bytes), count),
            (_, true) => {
                let mut rest = std::mem::take(&mut self.pending);
                rest.extend_from_slice(&bytes);
                (String::from_utf8_lossy(&rest).into_owned(), count)
            }
        }
    }

    fn decode(&mut self, bytes: &[u8]) -> String {
        let mut text = std::mem::take(&mut self.pending);
        text.extend_from_slice(bytes);
        let whole = complete_length(&text);
        self.pending = text.split_off(whole);
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Returns the next text of either stream. Waits forever when both have ended. Cancel-safe.
pub(crate) async fn read_either(
    out: &mut OutputPipe,
    err: &mut OutputPipe,
) -> (OutputStream, String, u64) {
    let (has_out, has_err) = (!out.has_ended, !err.has_ended);
    let (stream, (text, bytes)) = tokio::select! {
        read = out.read(), if has_out => (OutputStream::Out, read),
        read = err.read(), if has_err => (OutputStream::Err, read),
        else => std::future::pending().await,
    };
    (stream, text, bytes)
}

/// Returns the number of bytes before an incomplete character at the end.
fn complete_length(text: &[u8]) -> usize {
    let tail = text.len().saturating_sub(3);
    for (at, byte) in text.iter().enumerate().skip(tail) {
        let length = match byte {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => continue,
        };
        let is_so_far_valid =
            text.get(at + 1..).is_some_and(|rest| rest.iter().all(|b| (0x80..=0xBF).contains(b)));
        if at + length > text.len() && is_so_far_valid {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests;
