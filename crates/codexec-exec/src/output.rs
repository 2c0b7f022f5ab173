use codexec_types::Stream;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

const READ_BYTES: usize = 64 << 10;

/// One of a guest's output streams: bytes in, text out. A character that comes in two pieces is
/// one character; what is no character becomes U+FFFD.
pub(crate) struct Output {
    pipe: pipe::Receiver,
    /// The beginning of a character whose end has not come yet.
    pending: Vec<u8>,
    is_over: bool,
}

impl Output {
    pub(crate) fn new(pipe: pipe::Receiver) -> Output {
        Output { pipe, pending: Vec::new(), is_over: false }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// What was written next, and how many bytes it was. A pipe that fails is over. Cancel-safe.
    async fn read(&mut self) -> (String, u64) {
        let mut bytes = Vec::with_capacity(READ_BYTES);
        let count = self.pipe.read_buf(&mut bytes).await.unwrap_or(0);
        if count == 0 {
            self.is_over = true;
            let rest = std::mem::take(&mut self.pending);
            return (String::from_utf8_lossy(&rest).into_owned(), 0);
        }
        let mut text = std::mem::take(&mut self.pending);
        text.append(&mut bytes);
        let whole = whole_characters(&text);
        self.pending = text.split_off(whole);
        (String::from_utf8_lossy(&text).into_owned(), count as u64)
    }
}

/// What was written next, to either. Waits for ever when both
/// are over. Cancel-safe.
pub(crate) async fn written(out: &mut Output, err: &mut Output) -> (Stream, String, u64) {
    let (has_out, has_err) = (!out.is_over, !err.is_over);
    let (stream, (text, bytes)) = tokio::select! {
        read = out.read(), if has_out => (Stream::Out, read),
        read = err.read(), if has_err => (Stream::Err, read),
        else => std::future::pending().await,
    };
    (stream, text, bytes)
}

/// How many bytes of it do not belong to a character that is cut off at the end.
fn whole_characters(text: &[u8]) -> usize {
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
