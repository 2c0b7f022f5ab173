//! Mounts package directories in a guest that is already running.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codexec_sandbox::ZygoteLink;

use crate::pool::Machine;
use crate::session::{PACKAGES, mount_read_only};
use crate::zygote::blocking;
use crate::{ExecError, Run};

/// A handle to a running guest's mount namespace. Cheap to clone.
#[derive(Clone)]
pub struct Furnisher(Arc<Ways>);

struct Ways {
    machine: Arc<Machine>,
    zygote: Arc<ZygoteLink>,
    user: OwnedFd,
    mounts: OwnedFd,
}

impl Furnisher {
    /// Mounts a packages directory read-only in the guest, at the path that sessions use. Files
    /// that are added to it later are visible too.
    pub async fn show_packages(&self, folder: PathBuf) -> Result<(), ExecError> {
        let mount = mount_read_only(&self.0.machine, folder).await?;
        let ways = Arc::clone(&self.0);
        blocking(move || {
            let namespaces = [ways.user.as_fd(), ways.mounts.as_fd()];
            Ok(ways.zygote.attach(namespaces, mount.as_fd(), Path::new(PACKAGES))?)
        })
        .await
    }
}

impl Run {
    /// Returns a handle to mount packages. `None` for guests without files or without packages.
    pub fn furnisher(&mut self) -> Option<Furnisher> {
        let (machine, zygote) = self.behind()?;
        let (user, mounts) = self.home_mut()?.namespaces()?.ok()?;
        Some(Furnisher(Arc::new(Ways { machine, zygote, user, mounts })))
    }
}
