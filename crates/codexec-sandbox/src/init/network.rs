//! A network with nothing in it but one listener.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};

use crate::control::PROXY_PORT;
use crate::hull::errno_of;
use crate::sys;

/// THREAT[PKG-1]: the way to anywhere is this listener, and whoever holds its descriptor accepts
/// from it, in whichever network it lives itself.
pub(super) fn own() -> Result<OwnedFd, Errno> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    sys::raise_loopback()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).map_err(errno_of)?;
    Ok(listener.into())
}
