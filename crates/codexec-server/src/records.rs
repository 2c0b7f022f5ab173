use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use codexec_store::{Durability, Retention, Store, StoreError};
use codexec_types::{ExecutionId, SessionId};
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;

use crate::snapshots::Snapshots;

/// What is kept of executions: the store, and a folder for the files that each left.
///
/// The store is opened when first needed, so that a slow disk does not delay the first words to a
/// client. An opening that failed is tried again the next time.
pub struct Records {
    home: PathBuf,
    durability: Durability,
    retention: Retention,
    store: OnceCell<(Store, AbortHandle)>,
}

/// Whoever runs one execution and leaves has no time for it.
const FIRST_PASS: Duration = Duration::from_secs(30);

const BETWEEN_PASSES: Duration = Duration::from_secs(60 * 60);

impl Records {
    /// `home` has to be there, and be its owner's alone.
    pub fn at(home: PathBuf) -> Records {
        let (durability, retention) = (Durability::default(), Retention::default());
        Records { home, durability, retention, store: OnceCell::new() }
    }

    pub fn kept(mut self, durability: Durability, retention: Retention) -> Records {
        (self.durability, self.retention) = (durability, retention);
        self
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
            let task = tokio::spawn(retain(store.clone(), self.retention.clone()));
            Ok((store, task.abort_handle()))
        };
        self.store.get_or_try_init(open).await.map(|(store, _)| store)
    }

    /// A new folder for a session's own packages. It is removed with the session.
    pub(crate) async fn folder_for(&self, id: &SessionId) -> std::io::Result<PathBuf> {
        let folder = self.home.join("sessions").join(id.as_str());
        let made = folder.clone();
        let make = move || std::fs::DirBuilder::new().recursive(true).mode(0o700).create(made);
        tokio::task::spawn_blocking(make).await.map_err(std::io::Error::other)??;
        Ok(folder)
    }

    /// Where the packages are that this execution installs for itself.
    pub(crate) fn packages_of(&self, id: &ExecutionId) -> PathBuf {
        self.home.join("executions").join(id.as_str())
    }

    pub(crate) fn snapshots(&self) -> Snapshots {
        Snapshots::at(self.home.join("snapshots"))
    }

    /// The log files follow the store a moment later; here they are waited for.
    pub(crate) async fn flush(&self) {
        let Some((store, _)) = self.store.get() else { return };
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

impl Drop for Records {
    fn drop(&mut self) {
        // Its task has a handle of its own, which would keep the store open.
        if let Some((_, task)) = self.store.get() {
            task.abort();
        }
    }
}

async fn retain(store: Store, retention: Retention) {
    let mut wait = FIRST_PASS;
    loop {
        tokio::time::sleep(wait).await;
        wait = BETWEEN_PASSES;
        // Also those that died since we started.
        let interrupted = store.interrupt_leftovers(SystemTime::now()).await;
        if let Ok(interrupted @ 1..) = interrupted {
            tracing::warn!(interrupted, "executions of a server that died are marked so");
        }
        match store.retain(&retention, SystemTime::now()).await {
            Ok(removed) if removed.executions > 0 => {
                let (executions, sessions) = (removed.executions, removed.sessions);
                tracing::info!(executions, sessions, "removed what was kept long enough");
            }
            Ok(_) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "what was kept long enough cannot be removed");
            }
        }
    }
}

/// What guests left is for the folder's owner alone. Without the folder, nothing is kept.
fn make_private(folder: &Path) {
    if let Err(error) = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        tracing::warn!(%error, "{} cannot be made", folder.display());
    }
}
