//! Packages that code installs for its own execution. They are removed with it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use codexec_exec::packages::Packages;
use codexec_exec::{ExecError, PackageMounter};
use codexec_types::{ExecutionId, Language};
use tokio::sync::OnceCell;

/// A folder older than any execution was left by a server that died.
const STALE_AGE: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// THREAT[PKG-7]: packages that code installs are visible to its own execution only. The folder is
/// created on first use, and removed at the end of the execution.
pub(crate) struct ExecutionPackages {
    pub(crate) language: Language,
    folder: PathBuf,
    package_mounter: OnceLock<PackageMounter>,
    is_created: AtomicBool,
    is_visible: OnceCell<()>,
}

impl ExecutionPackages {
    pub(crate) fn new(language: Language, folder: PathBuf) -> ExecutionPackages {
        ExecutionPackages {
            language,
            folder,
            package_mounter: OnceLock::new(),
            is_created: AtomicBool::new(false),
            is_visible: OnceCell::new(),
        }
    }

    /// Sets the access to the guest's files, once it runs.
    pub(crate) fn set_package_mounter(&self, package_mounter: Option<PackageMounter>) {
        if let Some(package_mounter) = package_mounter {
            // There is one guest, so this is set once.
            let _ = self.package_mounter.set(package_mounter);
        }
    }

    /// Returns the folder if something may be installed there.
    pub(crate) fn created_folder(&self) -> Option<&Path> {
        self.is_created.load(Ordering::Acquire).then_some(&*self.folder)
    }

    /// Returns the folder that the guest sees. The first call creates it.
    pub(crate) async fn folder(&self) -> Result<&Path, ExecError> {
        self.is_visible.get_or_try_init(|| self.create()).await?;
        Ok(&self.folder)
    }

    async fn create(&self) -> Result<(), ExecError> {
        let Some(package_mounter) = self.package_mounter.get() else {
            return Err(io::Error::from(io::ErrorKind::Unsupported).into());
        };
        self.is_created.store(true, Ordering::Release);
        let folder = self.folder.clone();
        let make = move || {
            remove_old_siblings(&folder);
            Packages::create_session_folder(&folder)
        };
        let made = tokio::task::spawn_blocking(make).await.map_err(io::Error::other)??;
        package_mounter.mount_packages(made).await
    }

    /// Removes the folder, if it was created.
    pub(crate) async fn remove(&self) {
        let Some(folder) = self.created_folder() else { return };
        if let Err(error) = Packages::remove_folder(folder).await {
            let folder = folder.display();
            tracing::warn!(%error, %folder, "the packages of an execution cannot be removed");
        }
    }
}

fn remove_old_siblings(folder: &Path) {
    let entries = folder.parent().and_then(|parent| fs::read_dir(parent).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|it| ExecutionId::parse(it).is_some());
        // The metadata of the entry itself: symlinks are not followed.
        let written = entry.metadata().and_then(|about| about.modified());
        let age = written.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_ours && is_folder && age.is_some_and(|age| age > STALE_AGE) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
