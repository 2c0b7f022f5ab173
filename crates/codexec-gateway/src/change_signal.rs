use std::sync::Arc;

use tokio::sync::watch;

/// Signals that some server's tool list may have changed. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ChangeSignal(Arc<watch::Sender<u64>>);

impl ChangeSignal {
    pub(crate) fn notify(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
