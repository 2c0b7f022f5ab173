//! The mounter: a process that sees the host's files as the server does, and makes a detached
//! read-only mount of a directory of the user. A worker's keeper attaches it. Neither the server
//! nor the guest ever mounts anything of the host.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::fstat;
use nix::unistd::{getegid, geteuid};
use serde::{Deserialize, Serialize};

use crate::control::{receive, send};
use crate::{ZygoteLink, shared_layers, sys};

/// A request for a mount of the directory in which a guest will work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountRequest {
    /// A path without symlinks. The mount fails if any component has become one.
    pub path: PathBuf,
    /// The expected device and inode. The mount fails if the directory was replaced.
    pub device: u64,
    pub inode: u64,
    /// The owner whose files the guest sees as its own, if the server runs as root.
    pub owner: Option<(u32, u32)>,
}

#[derive(Debug, Serialize, Deserialize)]
enum MountReply {
    /// Attached: the directory's mount.
    Done,
    Failed(String),
}

/// The host's handle of the mounter process. Dropping the handle ends the process.
///
/// THREAT[FIL-10]: a caller holds the lock until the reply has arrived, so no caller receives the
/// directory that another one requested.
pub struct Mounter(Mutex<ZygoteLink>);

/// The kernel's `MOUNT_ATTR_*` flags.
pub(crate) const READ_ONLY: u64 = 1;
pub(crate) const NO_SETUID: u64 = 2;
pub(crate) const NO_DEVICES: u64 = 4;
/// The guest's user on the host, if the host runs as root.
const GUEST: u32 = 65_534;

impl Mounter {
    pub fn start(program: &Path, role: &str) -> io::Result<Mounter> {
        ZygoteLink::start(program, role).map(Mutex::new).map(Mounter)
    }

    /// Makes a detached read-only mount of the directory, without the mounts below it. Blocks.
    pub fn mount(&self, request: &MountRequest) -> io::Result<OwnedFd> {
        let link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        send(link.control(), request, &[])?;
        match receive(link.control())? {
            Some((MountReply::Done, mut mounts)) => {
                mounts.pop().ok_or_else(|| io::ErrorKind::InvalidData.into())
            }
            Some((MountReply::Failed(why), _)) => Err(io::Error::other(why)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Serves the host until it is gone.
pub fn serve_mounter(control: &OwnedFd) -> io::Result<()> {
    let ready = unshare_mounts();
    let mut owners = OwnerNamespaces::default();
    while let Some((request, _)) = receive::<MountRequest>(control.as_fd())? {
        match ready.and_then(|()| make_mount(&request, &mut owners)) {
            Ok(mount) => send(control.as_fd(), &MountReply::Done, &[mount.as_fd()])?,
            Err(errno) => {
                let failed = MountReply::Failed(errno.desc().to_owned());
                send(control.as_fd(), &failed, &[])?;
            }
        }
    }
    Ok(())
}

fn unshare_mounts() -> Result<(), Errno> {
    if !geteuid().is_root() {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        unshare(CloneFlags::CLONE_NEWUSER)?;
        shared_layers::map_user(user, group)?;
    }
    unshare(CloneFlags::CLONE_NEWNS)?;
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)
}

/// The user namespaces that map owners, the newest last. Most directories have the same owner, and
/// making a namespace takes longer than the rest of a mount.
#[derive(Default)]
struct OwnerNamespaces(Vec<((u32, u32), OwnedFd)>);

impl OwnerNamespaces {
    const MAX: usize = 16;

    /// Returns the namespace of this owner, and makes it if it does not exist yet.
    fn get_or_make(&mut self, owner: (u32, u32)) -> Result<&OwnedFd, Errno> {
        let at = match self.0.iter().position(|(known, _)| *known == owner) {
            Some(at) => at,
            None => {
                if self.0.len() >= OwnerNamespaces::MAX {
                    self.0.remove(0);
                }
                self.0.push((owner, make_id_map(owner)?));
                self.0.len() - 1
            }
        };
        self.0.get(at).map(|(_, users)| users).ok_or(Errno::EINVAL)
    }
}

fn make_mount(request: &MountRequest, owners: &mut OwnerNamespaces) -> Result<OwnedFd, Errno> {
    let directory = open(&request.path)?;
    let stat = fstat(&directory)?;
    // THREAT[FIL-1]: the mounted directory is the one that was checked, even if its path has
    // changed in between.
    if (stat.st_dev, stat.st_ino) != (request.device, request.inode) {
        return Err(Errno::ESTALE);
    }
    let users = request.owner.map(|owner| owners.get_or_make(owner)).transpose()?;
    let tree = sys::clone_tree(directory.as_fd(), false)?;
    let set = READ_ONLY | NO_SETUID | NO_DEVICES;
    let set = |users| sys::set_attributes(tree.as_fd(), set, users, false);
    match users {
        // A file system without id-mapped mounts keeps its owners.
        Some(users) if set(Some(users.as_fd())).is_ok() => {}
        Some(_) | None => set(None)?,
    }
    Ok(tree)
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    sys::open_without_links(&path)
}

/// Makes a user namespace that maps the owner's files to the guest.
fn make_id_map((user, group): (u32, u32)) -> Result<OwnedFd, Errno> {
    let (read_end, write_end) = nix::unistd::pipe()?;
    let sys::Cloned::Parent { pid, pidfd } = sys::clone_into(libc::CLONE_NEWUSER)? else {
        drop(write_end);
        // The child only holds the namespace. It exits when its parent closes the pipe.
        let _ = nix::unistd::read(&read_end, &mut [0]);
        sys::exit_now(0)
    };
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let write = |file: &str, id: u32| {
        let map = format!("{id} {GUEST} 1");
        std::fs::write(proc.join(file), map).map_err(shared_layers::errno_of)
    };
    let namespace = write("uid_map", user).and_then(|()| write("gid_map", group)).and_then(|()| {
        let opened = std::fs::File::open(proc.join("ns/user")).map_err(shared_layers::errno_of);
        opened.map(OwnedFd::from)
    });
    drop(write_end);
    let _ = sys::kill(pidfd.as_fd());
    let _ = sys::reap(pid);
    namespace
}
