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
    /// `stdin` goes to the first execution of a program. The pieces of output that wait in the
    /// channel are bounded by the limit of an execution's output.
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
        if let Some(output) = &self.output {
            // Fails when nobody watches any more.
            let _ = output.send((stream, text.to_owned()));
        }
    }
}
