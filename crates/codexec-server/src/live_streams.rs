//! The streams of code that a person watches while it runs.

use std::sync::{Arc, Mutex, PoisonError};

use codexec_exec::GuestStdin;
use codexec_types::OutputStream;
use tokio::sync::mpsc;

/// A piece of the code's output, as soon as it was written.
pub type OutputPiece = (OutputStream, String);

/// The streams of code that runs at somebody's terminal. Empty for all other clients, and for code
/// that other code starts.
#[derive(Clone, Default)]
pub struct LiveStreams {
    stdin: Arc<Mutex<Option<GuestStdin>>>,
    output: Option<mpsc::UnboundedSender<OutputPiece>>,
}

impl LiveStreams {
    /// `stdin` goes to the first execution of a program.
    ///
    /// The channel has no capacity of its own: waiting for a slow terminal would stop the clock and
    /// the answers of the code. What waits in it is bounded all the same. Output is counted before
    /// it is sent, an execution is stopped at `Limits::output_bytes`, only one execution has the
    /// streams, and no piece is empty; so the channel never has more than that many bytes or pieces.
    pub fn new(
        stdin: Option<GuestStdin>,
        output: mpsc::UnboundedSender<OutputPiece>,
    ) -> LiveStreams {
        LiveStreams { stdin: Arc::new(Mutex::new(stdin)), output: Some(output) }
    }

    pub(crate) fn take_stdin(&self) -> Option<GuestStdin> {
        self.stdin.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn send_output(&self, stream: OutputStream, text: &str) {
        if let (Some(output), false) = (&self.output, text.is_empty()) {
            // Fails when nobody watches any more.
            let _ = output.send((stream, text.to_owned()));
        }
    }
}
