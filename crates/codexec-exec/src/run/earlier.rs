//! The output of cells that have ended: what they have left running may still write there.

use std::future::poll_fn;
use std::task::Poll;

use codexec_types::Stream;

use crate::output::Output;

/// A guest can keep its output open for as long as it likes, also in one process for many cells.
const MAX_OPEN: usize = 128;

/// THREAT[SES-10]: what comes from here is not the output of the cell that runs.
#[derive(Default)]
pub(super) struct Earlier(Vec<(Stream, Output)>);

impl Earlier {
    /// Beyond what may be open, the oldest is closed: whoever writes there is told by the kernel.
    pub(super) fn push(&mut self, out: Output, err: Output) {
        self.0.extend([(Stream::Out, out), (Stream::Err, err)]);
        self.0.drain(..self.0.len().saturating_sub(MAX_OPEN));
    }

    /// Waits for what is written next. Cancel-safe.
    pub(super) async fn written(&mut self) -> (Stream, String) {
        poll_fn(|context| {
            for (stream, output) in &mut self.0 {
                while !output.is_over()
                    && let Poll::Ready(text) = output.poll_read(context)
                {
                    // Half a character is none yet.
                    if !text.is_empty() {
                        return Poll::Ready((*stream, text));
                    }
                }
            }
            self.0.retain(|(_, output)| !output.is_over());
            Poll::Pending
        })
        .await
    }

    /// What has been written up to now.
    pub(super) fn read_waiting(&mut self) -> Vec<(Stream, String)> {
        self.0.iter_mut().map(|(stream, output)| (*stream, output.read_waiting().0)).collect()
    }
}
