//! A network namespace that contains only one listener.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use crate::control::PROXY_PORT;
use crate::shared_layers::errno_of;
use crate::sys;

/// Enters a new network namespace and binds the listener.
///
/// THREAT[PKG-1]: the guest can connect only to this listener. The host accepts on its descriptor
/// from another network namespace.
pub(super) fn unshare_with_listener() -> Result<OwnedFd, Errno> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    sys::bring_up_loopback()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).map_err(errno_of)?;
    Ok(listener.into())
}
