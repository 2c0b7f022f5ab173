//! Progress and cancellation of work that a person waits for at a terminal.

use std::io::{IsTerminal as _, Write as _};

use codexec_server::{Client, Progress};
use tokio::sync::watch;

/// Waits for `work`, prints its progress, and cancels it on Ctrl-C.
pub(super) async fn run_with_progress<T>(client: &Client, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    let shown = show(client.progress.subscribe());
    tokio::pin!(shown);
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = tokio::signal::ctrl_c() => client.cancel.cancel(),
            never = &mut shown => match never {},
        }
    }
}

/// Prints progress messages to stderr if it is a terminal.
async fn show(mut progress: watch::Receiver<Progress>) -> std::convert::Infallible {
    while progress.changed().await.is_ok() {
        let message = progress.borrow_and_update().message.clone();
        if let Some(message) = message
            && std::io::stderr().is_terminal()
        {
            let _ = writeln!(std::io::stderr(), "{message}");
        }
    }
    std::future::pending().await
}
