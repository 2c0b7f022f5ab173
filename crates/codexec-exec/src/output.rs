use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use codexec_types::OutputStream;
use tokio::io::{AsyncRead as _, AsyncReadExt as _, ReadBuf};
use tokio::net::unix::pipe;

const READ_BYTES: usize = 64 << 10;
/// Upper bound of a pipe's capacity.
const PIPE_BYTES: u64 = 1 << 20;

/// An output stream of a guest, decoded as UTF-8. A character may arrive in two reads; invalid bytes become U+FFFD.
pub(crate) struct OutputPipe {
    pipe: pipe::Receiver,
    /// The same pipe, read without the runtime's readiness state, which may be older than a frame
    /// that was received after the text was written.
    direct: File,
    /// The first bytes of an incomplete character.
    pending: Vec<u8>,
    has_ended: bool,
}

impl OutputPipe {
    pub(crate) fn new(pipe: pipe::Receiver) -> io::Result<OutputPipe> {
        let direct = File::from(pipe.as_fd().try_clone_to_owned()?);
        Ok(OutputPipe { pipe, direct, pending: Vec::new(), has_ended: false })
    }

    /// Creates an output and its write end, which blocks like an ordinary stdout.
    pub(crate) fn with_sender() -> io::Result<(OutputPipe, OwnedFd)> {
        let (sender, receiver) = pipe::pipe()?;
        Ok((OutputPipe::new(receiver)?, sender.into_blocking_fd()?))
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
    /// one full pipe if the guest keeps writing.
    pub(crate) fn read_available(&mut self) -> (String, u64) {
        let mut bytes = Vec::new();
        // Ends with an error when the pipe is empty; the bytes read until then are kept.
        let _ = (&self.direct).take(PIPE_BYTES).read_to_end(&mut bytes);
        let count = bytes.len() as u64;
        if count == 0 { (String::new(), 0) } else { (self.decode(&bytes), count) }
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
