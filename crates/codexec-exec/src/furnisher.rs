//! Showing something to a guest that runs already.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use codexec_sandbox::ZygoteLink;

use crate::pool::Machine;
use crate::session::{PACKAGES, mount_read_only};
use crate::zygote::blocking;
use crate::{ExecError, Run};

/// The way to a running guest's view of files, from outside of it. Cheap to clone.
#[derive(Clone)]
pub struct Furnisher(Arc<Ways>);

struct Ways {
    machine: Arc<Machine>,
    zygote: Arc<ZygoteLink>,
    user: OwnedFd,
    mounts: OwnedFd,
}

impl Furnisher {
    /// Shows the guest a folder of packages, read-only, where sessions have theirs; also what is
    /// put there later.
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
    /// The way to the guest's files. `None` for guests that have none, or no packages.
    pub fn furnisher(&mut self) -> Option<Furnisher> {
        let (machine, zygote) = self.behind()?;
        let (user, mounts) = self.home_mut()?.namespaces()?.ok()?;
        Some(Furnisher(Arc::new(Ways { machine, zygote, user, mounts })))
    }
}
