//! Attaching a mount in a worker that runs already. The worker's own processes have no right to
//! mount anything; a child of the zygote, above the worker's user namespace, has.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};

use crate::control::{Attached, send};
use crate::sys;

/// Does it in a child, since whoever enters a namespace does not come back. The guest may have
/// put anything at `target`: what that leads to is in the worker's own view, and only there.
pub(crate) fn attach(target: &Path, beside: Vec<OwnedFd>, answer: &OwnedFd) -> io::Result<()> {
    if sys::fork()?.is_some() {
        return Ok(());
    }
    let attached = match enter_and_attach(target, beside) {
        Ok(()) => Attached::Done,
        Err(errno) => Attached::Failed { errno: errno as i32 },
    };
    let said = send(answer.as_fd(), &attached, &[]);
    sys::exit_now(i32::from(said.is_err()))
}

fn enter_and_attach(target: &Path, beside: Vec<OwnedFd>) -> Result<(), Errno> {
    let [user, mounts, mount] = <[OwnedFd; 3]>::try_from(beside).map_err(|_| Errno::EINVAL)?;
    let target = CString::new(target.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    setns(user, CloneFlags::CLONE_NEWUSER)?;
    setns(mounts, CloneFlags::CLONE_NEWNS)?;
    sys::move_mount(mount.as_fd(), &target)
}
