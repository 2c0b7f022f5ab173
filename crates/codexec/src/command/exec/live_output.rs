//! Prints what the code writes, as soon as the code writes it.

use std::io::{self, Write};

use codexec_server::OutputPiece;
use codexec_types::OutputStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

/// What was printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LiveOutput {
    /// True if the code wrote to stdout.
    pub(super) has_stdout: bool,
    is_mid_line_out: bool,
    is_mid_line_err: bool,
}

/// Prints the pieces until there are no more. Stops the code when nobody reads its output, as in
/// `codexec exec .. | head`.
pub(super) async fn print_live(
    mut pieces: UnboundedReceiver<OutputPiece>,
    cancel: CancellationToken,
) -> io::Result<LiveOutput> {
    // A reader such as a pager may stop the writer for long, but not the code's clock.
    let printing = tokio::task::spawn_blocking(move || {
        let mut live = LiveOutput::default();
        while let Some((stream, text)) = pieces.blocking_recv() {
            if let Err(error) = live.print(stream, &text) {
                cancel.cancel();
                return Err(error);
            }
        }
        Ok(live)
    });
    printing.await.map_err(io::Error::other)?
}

impl LiveOutput {
    fn print(&mut self, stream: OutputStream, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let is_mid_line = !text.ends_with('\n');
        match stream {
            OutputStream::Out => {
                (self.has_stdout, self.is_mid_line_out) = (true, is_mid_line);
                write_all(&mut io::stdout().lock(), text)
            }
            OutputStream::Err => {
                self.is_mid_line_err = is_mid_line;
                write_all(&mut io::stderr().lock(), text)
            }
        }
    }

    /// Ends a line that the code has not ended.
    pub(super) fn end_lines(self) -> io::Result<()> {
        if self.is_mid_line_out {
            write_all(&mut io::stdout().lock(), "\n")?;
        }
        if self.is_mid_line_err {
            write_all(&mut io::stderr().lock(), "\n")?;
        }
        Ok(())
    }
}

fn write_all(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}
