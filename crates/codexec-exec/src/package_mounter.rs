//! Mounts package directories in a guest that is already running.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codexec_sandbox::ZygoteLink;

use crate::ExecError;
use crate::pool::HostResources;
use crate::session::{PACKAGES, mount_read_only};
use crate::zygote::run_blocking;

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
