//! Attaches a mount in a running worker. The worker's own processes may not mount anything. A
//! child of the zygote may, because it is above the worker's user namespace.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};

use crate::control::{AttachReply, send};
use crate::sys;

/// Forks a child that attaches the mount, because a process cannot leave a namespace it has
/// entered. The guest may have put anything at `target`, but that affects only the worker's view.
pub(crate) fn attach(target: &Path, fds: Vec<OwnedFd>, answer: &OwnedFd) -> io::Result<()> {
    if sys::fork()?.is_some() {
        return Ok(());
    }
    let reply = match enter_and_attach(target, fds) {
        Ok(()) => AttachReply::Done,
        Err(errno) => AttachReply::Failed { errno: errno as i32 },
    };
    let sent = send(answer.as_fd(), &reply, &[]);
    sys::exit_now(i32::from(sent.is_err()))
}

fn enter_and_attach(target: &Path, fds: Vec<OwnedFd>) -> Result<(), Errno> {
    let [user, mounts, mount] = <[OwnedFd; 3]>::try_from(fds).map_err(|_| Errno::EINVAL)?;
    let target = CString::new(target.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    setns(user, CloneFlags::CLONE_NEWUSER)?;
    setns(mounts, CloneFlags::CLONE_NEWNS)?;
    sys::move_mount(mount.as_fd(), &target)
}
