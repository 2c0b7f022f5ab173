use std::sync::Arc;

use tokio::sync::watch;

/// Signals that some server's tool list may have changed. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Bell(Arc<watch::Sender<u64>>);

impl Bell {
    pub(crate) fn ring(&self) {
        self.0.send_modify(|rung| *rung = rung.wrapping_add(1));
    }

    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
