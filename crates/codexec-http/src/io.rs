//! A client's connection with bounds in time.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long what a client still sends is discarded after the last response. Closing earlier would
/// reset the connection, and the client might lose that response.
const LINGER: Duration = Duration::from_secs(2);

/// Fails if the client takes no bytes for too long, and closes without losing the last response.
///
/// THREAT[HTTP-2]: slow readers are disconnected.
pub(crate) struct BoundedIo<T> {
    inner: T,
    write_timeout: Duration,
    /// Runs while a write waits for the client.
    write_deadline: Option<Pin<Box<Sleep>>>,
    /// Runs after our end is closed.
    linger: Option<Pin<Box<Sleep>>>,
}

impl<T> BoundedIo<T> {
    pub(crate) fn new(inner: T, write_timeout: Duration) -> BoundedIo<T> {
        BoundedIo { inner, write_timeout, write_deadline: None, linger: None }
    }

    fn bound_write<R>(
        &mut self,
        written: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.write_deadline = None;
            return written;
        }
        let timeout = self.write_timeout;
        let deadline =
            self.write_deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for BoundedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for BoundedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.bound_write(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.bound_write(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            let closed = Pin::new(&mut self.inner).poll_shutdown(context);
            ready!(self.bound_write(closed, context))?;
            self.linger = Some(Box::pin(tokio::time::sleep_until(Instant::now() + LINGER)));
        }
        let mut scratch = [0; 16 << 10];
        loop {
            if let Some(linger) = &mut self.linger
                && linger.as_mut().poll(context).is_ready()
            {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
        }
    }
}
