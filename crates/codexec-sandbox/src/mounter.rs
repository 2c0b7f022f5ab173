//! The mounter: a process that sees the host's files as the server does and turns a directory of
//! the user's into a read-only mount that belongs nowhere yet. A worker's keeper attaches it;
//! neither the server nor the guest ever mounts anything of the host's.

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
use crate::{ZygoteLink, hull, sys};

/// A directory that a guest is to work in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// A real path: if any part of it is a link by now, there is no mount.
    pub path: PathBuf,
    /// It has to be this one still.
    pub device: u64,
    pub inode: u64,
    /// Where the server is root: the owner, whose files the guest sees as its own.
    pub owner: Option<(u32, u32)>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Mounted {
    /// Beside this: the directory's mount.
    Done,
    Failed(String),
}

/// The host's hold on the mounter. Dropping it ends the process.
///
/// THREAT[FIL-10]: whoever asks keeps the link until the answer has come, so that nobody gets the
/// directory that somebody else asked for.
pub struct Mounter(Mutex<ZygoteLink>);

/// Attributes of mounts, as the kernel numbers them.
pub(crate) const READ_ONLY: u64 = 1;
pub(crate) const NO_SETUID: u64 = 2;
pub(crate) const NO_DEVICES: u64 = 4;
/// The guest's user on the host when the host is root.
const GUEST: u32 = 65_534;

impl Mounter {
    pub fn start(program: &Path, role: &str) -> io::Result<Mounter> {
        ZygoteLink::start(program, role).map(Mutex::new).map(Mounter)
    }

    /// Makes a detached, read-only mount of the directory. What is mounted below the directory is
    /// not part of it. Blocks.
    pub fn mount(&self, wanted: &Wanted) -> io::Result<OwnedFd> {
        let link = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        send(link.control(), wanted, &[])?;
        match receive(link.control())? {
            Some((Mounted::Done, mut mounts)) => {
                mounts.pop().ok_or_else(|| io::ErrorKind::InvalidData.into())
            }
            Some((Mounted::Failed(why), _)) => Err(io::Error::other(why)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// Serves the host until it is gone.
pub fn serve_mounter(control: &OwnedFd) -> io::Result<()> {
    let ready = own_mounts();
    let mut owners = Owners::default();
    while let Some((wanted, _)) = receive::<Wanted>(control.as_fd())? {
        match ready.and_then(|()| detached(&wanted, &mut owners)) {
            Ok(mount) => send(control.as_fd(), &Mounted::Done, &[mount.as_fd()])?,
            Err(errno) => {
                let failed = Mounted::Failed(errno.desc().to_owned());
                send(control.as_fd(), &failed, &[])?;
            }
        }
    }
    Ok(())
}

fn own_mounts() -> Result<(), Errno> {
    if !geteuid().is_root() {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        unshare(CloneFlags::CLONE_NEWUSER)?;
        hull::map_user(user, group)?;
    }
    unshare(CloneFlags::CLONE_NEWNS)?;
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)
}

/// The user namespaces that map owners, the newest last: most directories are of one owner, and
/// making a namespace takes longer than all the rest.
#[derive(Default)]
struct Owners(Vec<((u32, u32), OwnedFd)>);

impl Owners {
    const MAX: usize = 16;

    fn mapping(&mut self, owner: (u32, u32)) -> Result<&OwnedFd, Errno> {
        let at = match self.0.iter().position(|(known, _)| *known == owner) {
            Some(at) => at,
            None => {
                if self.0.len() >= Owners::MAX {
                    self.0.remove(0);
                }
                self.0.push((owner, mapping(owner)?));
                self.0.len() - 1
            }
        };
        self.0.get(at).map(|(_, users)| users).ok_or(Errno::EINVAL)
    }
}

fn detached(wanted: &Wanted, owners: &mut Owners) -> Result<OwnedFd, Errno> {
    let directory = open(&wanted.path)?;
    let found = fstat(&directory)?;
    // THREAT[FIL-1]: what was judged is what is mounted, whatever happened in between.
    if (found.st_dev, found.st_ino) != (wanted.device, wanted.inode) {
        return Err(Errno::ESTALE);
    }
    let users = wanted.owner.map(|owner| owners.mapping(owner)).transpose()?;
    let tree = sys::clone_tree(directory.as_fd(), false)?;
    let set = READ_ONLY | NO_SETUID | NO_DEVICES;
    let set = |users| sys::set_attributes(tree.as_fd(), set, users, false);
    match users {
        // A file system that cannot map owners shows them as they are.
        Some(users) if set(Some(users.as_fd())).is_ok() => {}
        Some(_) | None => set(None)?,
    }
    Ok(tree)
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)?;
    sys::open_without_links(&path)
}

/// A user namespace in which the owner's files are the guest's.
fn mapping((user, group): (u32, u32)) -> Result<OwnedFd, Errno> {
    let (held, hold) = nix::unistd::pipe()?;
    let sys::Cloned::Parent { pid, pidfd } = sys::clone_into(libc::CLONE_NEWUSER)? else {
        drop(hold);
        // Only a name for the namespace: it ends when its parent closes the pipe.
        let _ = nix::unistd::read(&held, &mut [0]);
        sys::exit_now(0)
    };
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let write = |file: &str, id: u32| {
        let map = format!("{id} {GUEST} 1");
        std::fs::write(proc.join(file), map).map_err(hull::errno_of)
    };
    let made = write("uid_map", user).and_then(|()| write("gid_map", group)).and_then(|()| {
        let opened = std::fs::File::open(proc.join("ns/user")).map_err(hull::errno_of);
        opened.map(OwnedFd::from)
    });
    drop(hold);
    let _ = sys::kill(pidfd.as_fd());
    let _ = sys::reap(pid);
    made
}
