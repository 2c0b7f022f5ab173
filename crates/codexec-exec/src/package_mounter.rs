//! Mounts package directories in a guest that is already running.

use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codexec_sandbox::{MountRequest, ZygoteLink};

use crate::ExecError;
use crate::pool::HostResources;
use crate::zygote::run_blocking;

/// The guest's path of the packages of its session or execution.
pub(crate) const PACKAGES: &str = "/box/packages";

/// A handle to a running guest's mount namespace. Cheap to clone.
#[derive(Clone)]
pub struct PackageMounter(Arc<GuestMounts>);

struct GuestMounts {
    resources: Arc<HostResources>,
    zygote: Arc<ZygoteLink>,
    user: OwnedFd,
    mounts: OwnedFd,
}

impl PackageMounter {
    /// `namespaces` are the guest's user and mount namespace.
    pub(crate) fn new(
        resources: Arc<HostResources>,
        zygote: Arc<ZygoteLink>,
        namespaces: (OwnedFd, OwnedFd),
    ) -> PackageMounter {
        let (user, mounts) = namespaces;
        PackageMounter(Arc::new(GuestMounts { resources, zygote, user, mounts }))
    }

    /// Mounts a packages directory read-only in the guest, at the path that sessions use. Files
    /// that are added to it later are visible too.
    pub async fn mount_packages(&self, folder: PathBuf) -> Result<(), ExecError> {
        let mount = mount_read_only(&self.0.resources, folder).await?;
        let guest = Arc::clone(&self.0);
        run_blocking(move || {
            let namespaces = [guest.user.as_fd(), guest.mounts.as_fd()];
            Ok(guest.zygote.attach(namespaces, mount.as_fd(), Path::new(PACKAGES))?)
        })
        .await
    }
}

/// Returns a read-only mount of one of our own directories.
pub(crate) async fn mount_read_only(
    resources: &HostResources,
    path: PathBuf,
) -> Result<OwnedFd, ExecError> {
    let mounter = resources.mounter().await?;
    run_blocking(move || {
        let found = fs::metadata(&path)?;
        let owner = codexec_sandbox::is_root().then_some((found.uid(), found.gid()));
        let (device, inode) = (found.dev(), found.ino());
        Ok(mounter.mount(&MountRequest { path, device, inode, owner })?)
    })
    .await
}
