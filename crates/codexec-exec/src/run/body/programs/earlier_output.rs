//! Output pipes of earlier cells. Processes that those cells left running may still write to them.

use std::future::poll_fn;
use std::task::Poll;

use codexec_types::OutputStream;

use crate::output::OutputPipe;

/// Limit of open pipes: a guest can keep its pipes open, even those of many cells in one process.
const MAX_OPEN: usize = 128;

/// THREAT[SES-10]: text from these pipes is not output of the current cell.
#[derive(Default)]
pub(super) struct EarlierOutputs(Vec<(OutputStream, OutputPipe)>);

impl EarlierOutputs {
    /// Adds two pipes. Above the limit the oldest are closed, and their writers get EPIPE.
    pub(super) fn push(&mut self, out: OutputPipe, err: OutputPipe) {
        self.0.extend([(OutputStream::Out, out), (OutputStream::Err, err)]);
        self.0.drain(..self.0.len().saturating_sub(MAX_OPEN));
    }

    /// Waits for the next text. Cancel-safe.
    pub(super) async fn read_next(&mut self) -> (OutputStream, String) {
        poll_fn(|context| {
            for (stream, output) in &mut self.0 {
                while !output.has_ended()
                    && let Poll::Ready(text) = output.poll_read(context)
                {
                    // An empty text is an incomplete character.
                    if !text.is_empty() {
                        return Poll::Ready((*stream, text));
                    }
                }
            }
            self.0.retain(|(_, output)| !output.has_ended());
            Poll::Pending
        })
        .await
    }

    /// Returns everything that has been written so far.
    pub(super) fn read_available(&mut self) -> Vec<(OutputStream, String)> {
        self.0.iter_mut().map(|(stream, output)| (*stream, output.read_available().0)).collect()
    }
}
