use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use codexec_files::private_files;
use codexec_store::{Durability, Retention, Store, StoreError};
use codexec_types::{ExecutionId, Identity, SessionId};
use tokio::sync::OnceCell;
use tokio::task::AbortHandle;

use crate::artifact_files::{self, ArtifactError, ArtifactFile};
use crate::snapshots::Snapshots;

/// The store, and a folder for the artifacts of each execution.
///
/// The store is opened on first use, so that a slow disk does not delay the first reply to a
/// client. If opening fails, the next use tries again.
pub struct Records {
    home: PathBuf,
    durability: Durability,
    retention: Retention,
    store: OnceCell<(Store, AbortHandle)>,
}

/// Delayed, because a process that runs one execution and exits has no time for it.
const FIRST_PASS: Duration = Duration::from_secs(30);

/// Interval between two retention passes.
const BETWEEN_PASSES: Duration = Duration::from_secs(60 * 60);

impl Records {
    /// Opens lazily. `home` must exist, and be accessible to its owner only.
    pub fn at(home: PathBuf) -> Records {
        let (durability, retention) = (Durability::default(), Retention::default());
        Records { home, durability, retention, store: OnceCell::new() }
    }

    pub fn with_retention(mut self, durability: Durability, retention: Retention) -> Records {
        (self.durability, self.retention) = (durability, retention);
        self
    }

    /// Returns the store. Opening it also marks executions of servers that died as interrupted.
    pub async fn store(&self) -> Result<&Store, StoreError> {
        let open = || async {
            create_private_folder(&self.home.join("artifacts"));
            let store = Store::open(&self.home.join("codexec.db"), self.durability).await?;
            let interrupted = store.interrupt_leftovers(SystemTime::now()).await?;
            if interrupted > 0 {
                tracing::warn!(
                    interrupted,
                    "executions of a server that died are marked as interrupted"
                );
            }
            let task = tokio::spawn(retain(store.clone(), self.retention.clone()));
            Ok((store, task.abort_handle()))
        };
        self.store.get_or_try_init(open).await.map(|(store, _)| store)
    }

    /// Creates a folder for a session's own packages. It is removed with the session.
    pub(crate) async fn create_session_folder(&self, id: &SessionId) -> std::io::Result<PathBuf> {
        let folder = self.home.join("sessions").join(id.as_str());
        let made = folder.clone();
        let make = move || private_files::make_folder(&made);
        tokio::task::spawn_blocking(make).await.map_err(std::io::Error::other)??;
        Ok(folder)
    }

    /// Returns the folder for packages that this execution installs for itself.
    pub(crate) fn packages_folder(&self, id: &ExecutionId) -> PathBuf {
        self.home.join("executions").join(id.as_str())
    }

    pub(crate) fn snapshots(&self, identity: &Identity) -> Snapshots {
        Snapshots::of(identity, self.home.join("snapshots"))
    }

    /// Waits until the log files, which are written a moment after the store, are complete.
    pub(crate) async fn flush(&self) {
        let Some((store, _)) = self.store.get() else { return };
        if let Err(error) = store.flush().await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "log files are incomplete; the next start completes them");
        }
    }

    /// Lists the kept files of an execution that the client may see.
    pub async fn list_artifacts(&self, id: &ExecutionId) -> Vec<ArtifactFile> {
        let folder = self.artifacts_folder(id);
        let listed = tokio::task::spawn_blocking(move || artifact_files::list(&folder));
        listed.await.unwrap_or_default()
    }

    /// Reads a kept file of an execution that the client may see. The path is not trusted.
    pub async fn read_artifact(
        &self,
        id: &ExecutionId,
        path: &str,
    ) -> Result<Vec<u8>, ArtifactError> {
        let folder = self.artifacts_folder(id);
        let names: Vec<PathBuf> = path.split('/').map(PathBuf::from).collect();
        let read = tokio::task::spawn_blocking(move || artifact_files::read(&folder, &names));
        read.await.unwrap_or(Err(ArtifactError::Missing))
    }

    /// Returns the folder for the artifacts of this execution. It exists if there are any.
    pub(crate) fn artifacts_folder(&self, id: &ExecutionId) -> PathBuf {
        self.home.join("artifacts").join(id.as_str())
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // The task has its own handle, which would keep the store open.
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
        // Includes servers that died since this one started.
        let interrupted = store.interrupt_leftovers(SystemTime::now()).await;
        if let Ok(interrupted @ 1..) = interrupted {
            tracing::warn!(
                interrupted,
                "executions of a server that died are marked as interrupted"
            );
        }
        match store.apply_retention(&retention, SystemTime::now()).await {
            Ok(removed) if removed.executions > 0 => {
                let (executions, sessions) = (removed.executions, removed.sessions);
                tracing::info!(executions, sessions, "removed records that exceeded the retention");
            }
            Ok(_) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "records that exceed the retention cannot be removed");
            }
        }
    }
}

/// Creates the folder of artifacts for its owner only. Without it, no artifacts are kept.
fn create_private_folder(folder: &Path) {
    if let Err(error) = private_files::make_folder(folder) {
        tracing::warn!(%error, "{} cannot be created", folder.display());
    }
}
