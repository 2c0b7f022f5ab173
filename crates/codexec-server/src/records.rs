use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use codexec_store::{Durability, Store, StoreError};
use codexec_types::{ExecutionId, SessionId};
use tokio::sync::OnceCell;

use crate::snapshots::Snapshots;

/// What is kept of executions: the store, and a folder for the files that each left.
///
/// The store is opened when first needed, so that a slow disk does not delay the first words to a
/// client. An opening that failed is tried again the next time.
pub struct Records {
    home: PathBuf,
    durability: Durability,
    store: OnceCell<Store>,
}

impl Records {
    /// `home` has to be there, and be its owner's alone.
    pub fn at(home: PathBuf) -> Records {
        Records { home, durability: Durability::default(), store: OnceCell::new() }
    }

    pub fn with_durability(self, durability: Durability) -> Records {
        Records { durability, ..self }
    }

    /// Whoever opens it also takes over what servers that died have left.
    pub async fn store(&self) -> Result<&Store, StoreError> {
        let open = || async {
            make_private(&self.home.join("artifacts"));
            let store = Store::open(&self.home.join("codexec.db"), self.durability).await?;
            let interrupted = store.interrupt_leftovers(SystemTime::now()).await?;
            if interrupted > 0 {
                tracing::warn!(interrupted, "executions of a server that died are marked so");
            }
            Ok(store)
        };
        self.store.get_or_try_init(open).await
    }

    /// A new folder for a session's own packages. It is removed with the session.
    pub(crate) async fn folder_for(&self, id: &SessionId) -> std::io::Result<PathBuf> {
        let folder = self.home.join("sessions").join(id.as_str());
        let made = folder.clone();
        let make = move || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(made);
        tokio::task::spawn_blocking(make).await.map_err(std::io::Error::other)??;
        Ok(folder)
    }

    pub(crate) fn snapshots(&self) -> Snapshots {
        Snapshots::at(self.home.join("snapshots"))
    }

    /// The log files follow the store a moment later; here they are waited for.
    pub(crate) async fn flush(&self) {
        let Some(store) = self.store.get() else { return };
        if let Err(error) = store.flush().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the next start writes what is missing in the log files");
        }
    }

    /// Where the files that this execution left are kept, if it left any.
    pub(crate) fn artifacts(&self, id: &ExecutionId) -> PathBuf {
        self.home.join("artifacts").join(id.as_str())
    }
}

/// What guests left is for the folder's owner alone. Without the folder, nothing is kept.
fn make_private(folder: &Path) {
    if let Err(error) = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        tracing::warn!(%error, "{} cannot be made", folder.display());
    }
}
