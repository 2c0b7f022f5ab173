//! The stdin of a guest that is a program.

use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The bytes for a guest's stdin, in pieces. The end of the channel is the end of the input.
pub struct GuestStdin(mpsc::Receiver<Vec<u8>>);

impl GuestStdin {
    /// Creates a channel that holds one piece: a guest that does not read stops its sender.
    pub fn channel() -> (mpsc::Sender<Vec<u8>>, GuestStdin) {
        let (sender, receiver) = mpsc::channel(1);
        (sender, GuestStdin(receiver))
    }
}

/// Writes a guest's stdin until the input ends or the pump is dropped.
pub(crate) struct StdinPump(JoinHandle<()>);

impl StdinPump {
    pub(crate) fn start(GuestStdin(mut source): GuestStdin, mut to: pipe::Sender) -> StdinPump {
        StdinPump(tokio::spawn(async move {
            while let Some(piece) = source.recv().await {
                // Fails when no process of the guest can read any more.
                if to.write_all(&piece).await.is_err() {
                    return;
                }
            }
        }))
    }
}

impl Drop for StdinPump {
    fn drop(&mut self) {
        self.0.abort();
    }
}
