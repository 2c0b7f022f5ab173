//! The walls that many workers share: built once, off the path of any request.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd as _;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::unistd::{
    Gid, Uid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, getegid, geteuid, pivot_root, setgroups,
    sethostname, setresgid, setresuid, setsid,
};

use crate::{Broken, Launch, Layer, Missing, Room, ruleset, seccomp, sys, tree};

/// For a keeper of workers that need no files: every layer that they share. A layer that the
/// plan lets go is tried all the same, and reported when it is missing.
pub(crate) fn build(launch: &Launch) -> Result<Vec<Missing>, Broken> {
    let mut walls = Walls::new(&launch.lowered);
    walls.raise(Layer::User, "detach from the terminal", silence)?;
    walls.raise(Layer::User, "become an unprivileged user", || become_nobody(launch.uid))?;
    walls.raise(Layer::User, "unshare a user namespace", own_user)?;
    walls.raise(Layer::Mount, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWNS))?;
    walls.own_network()?;
    walls.own_names(&launch.hostname)?;
    // THREAT[ESC-2]: nothing of the host's file tree is left to be read.
    walls.raise(Layer::Root, "pivot into an empty root", empty_root)?;
    walls.raise(Layer::NoNewPrivileges, "prctl", prctl::set_no_new_privs)?;
    walls.raise(Layer::Landlock, "restrict", ruleset::deny_all)?;
    // Nobody with our user id can look into this process or its workers.
    walls.raise(Layer::User, "become undumpable", || prctl::set_dumpable(false))?;
    Ok(walls.missing)
}

/// For a zygote of programs: the room that all its keepers and workers live in.
pub(crate) fn enter_room(launch: &Launch, room: &Room) -> Result<Vec<Missing>, Broken> {
    let mut walls = Walls::new(&launch.lowered);
    walls.raise(Layer::User, "detach from the terminal", silence)?;
    // What a plain user may not read is not there for a guest either; but root may show a guest
    // an interpreter that lives in a private directory.
    let is_root = geteuid().is_root();
    if is_root {
        walls.raise(Layer::Mount, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWNS))?;
        walls.raise(Layer::Root, "build the room", || tree::enter(room))?;
        walls.raise(Layer::User, "become an unprivileged user", || become_nobody(launch.uid))?;
    }
    walls.raise(Layer::User, "unshare a user namespace", own_user)?;
    walls.raise(Layer::Mount, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWNS))?;
    if !is_root {
        walls.raise(Layer::Root, "build the room", || tree::enter(room))?;
    }
    walls.own_network()?;
    walls.own_names(&launch.hostname)?;
    walls.raise(Layer::NoNewPrivileges, "prctl", prctl::set_no_new_privs)?;
    if let Some(bytes) = launch.data_bytes {
        // THREAT[RES-9]: what is below the zygote inherits both, whatever language it speaks.
        walls.raise(Layer::Rlimits, "limit data", || sys::limit(libc::RLIMIT_DATA, bytes))?;
        walls.raise(Layer::Seccomp, "refuse shared memory", seccomp::refuse_shared_memory)?;
    }
    walls.own_processes()?;
    // Each worker makes rules of its own; whether there are any is the same for all of them.
    walls.raise(Layer::Landlock, "make the rules", ruleset::check)?;
    // Programs that live in the room have our user id, and must not look into this process.
    walls.raise(Layer::User, "become undumpable", || prctl::set_dumpable(false))?;
    Ok(walls.missing)
}

/// For a program of somebody else's that lives in a room and forks guests: the walls that its
/// guests keep, but for the right to enter the namespaces of workers.
///
/// THREAT[ZYG-1]: they stand before the program is started, so before anything is imported.
pub(crate) fn surround_program(lowered: &[Layer]) -> Result<(), Broken> {
    let mut walls = Walls::new(lowered);
    walls.raise(Layer::User, "begin a session", || setsid().map(drop))?;
    walls.raise(Layer::Mount, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWNS))?;
    // What is not ptraceable for it is not there: we and the keepers, which share the namespace.
    let others_hidden = "subset=pid,hidepid=2";
    walls.raise(Layer::Pid, "cover the view of processes", || {
        tree::cover_processes(others_hidden)
    })?;
    walls.raise(Layer::Landlock, "restrict", ruleset::deny_signals)?;
    // Without a user namespace of their own, workers give nothing to whoever enters them.
    let needed: &[u32] = if lowered.contains(&Layer::User) {
        &[CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SETPCAP]
    } else {
        &[CAP_SYS_ADMIN]
    };
    walls.raise(Layer::Capabilities, "keep what it needs", || sys::keep_capabilities(needed))?;
    walls.raise(Layer::Seccomp, "load the filter", || seccomp::confine(seccomp::Calls::Entering))
}

/// The capability to enter namespaces below our own, and with them to enter a mount namespace and
/// to give up capabilities for good.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_CHROOT: u32 = 18;
const CAP_SETPCAP: u32 = 8;

/// For a keeper in a room: what no two slots share.
pub(crate) fn settle(launch: &Launch) -> Result<Vec<Missing>, Broken> {
    let mut walls = Walls::new(&launch.lowered);
    walls.own_network()?;
    walls.raise(Layer::User, "become undumpable", || prctl::set_dumpable(false))?;
    Ok(walls.missing)
}

struct Walls<'a> {
    lowered: &'a [Layer],
    missing: Vec<Missing>,
}

impl<'a> Walls<'a> {
    fn new(lowered: &'a [Layer]) -> Walls<'a> {
        Walls { lowered, missing: Vec::new() }
    }

    fn raise(
        &mut self,
        layer: Layer,
        step: &str,
        build: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Broken> {
        let Err(errno) = build() else { return Ok(()) };
        if !self.lowered.contains(&layer) {
            return Err(Broken::new(layer, step, errno as i32));
        }
        let reason = format!("{step}: {}", errno.desc());
        if self.missing.iter().all(|missing| missing.layer != layer) {
            self.missing.push(Missing { layer, reason });
        }
        Ok(())
    }

    /// THREAT[NET-1]: the new namespace has no interface that is up.
    fn own_network(&mut self) -> Result<(), Broken> {
        let step = "unshare the namespace";
        self.raise(Layer::Network, step, || unshare(CloneFlags::CLONE_NEWNET))
    }

    /// A zygote is the first process of its namespace, with its keepers and programs in it.
    fn own_processes(&mut self) -> Result<(), Broken> {
        self.raise(Layer::Pid, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWPID))?;
        if self.missing.iter().any(|missing| missing.layer == Layer::Pid) {
            return Ok(());
        }
        self.raise(Layer::Pid, "become its first process", sys::go_on_in_child)
    }

    fn own_names(&mut self, hostname: &str) -> Result<(), Broken> {
        for (layer, flag) in [
            (Layer::Ipc, CloneFlags::CLONE_NEWIPC),
            (Layer::Uts, CloneFlags::CLONE_NEWUTS),
            (Layer::CgroupNamespace, CloneFlags::CLONE_NEWCGROUP),
        ] {
            self.raise(layer, "unshare the namespace", || unshare(flag))?;
        }
        self.raise(Layer::Uts, "set the host name", || sethostname(hostname))
    }
}

/// No terminal to inject into, no output of the server's to write into.
fn silence() -> Result<(), Errno> {
    // Fails only for a process-group leader; a process that we start is none, but one that a
    // debugger starts is, and has no terminal to lose.
    setsid().map(drop).or_else(|errno| if errno == Errno::EPERM { Ok(()) } else { Err(errno) })?;
    let null = File::options().read(true).write(true).open("/dev/null").map_err(errno_of)?;
    dup2_stdin(null.as_fd())?;
    dup2_stdout(null.as_fd())?;
    dup2_stderr(null.as_fd())
}

/// THREAT[ESC-5]: root of the host never runs a guest, not even behind walls.
fn become_nobody(uid: u32) -> Result<(), Errno> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    setgroups(&[])?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)?;
    // Changing users made our own /proc files root's; the id maps are among them.
    prctl::set_dumpable(true)
}

fn own_user() -> Result<(), Errno> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    map_user(user, group)
}

/// In a new user namespace, we are user 1000; outside we stay who we were.
pub(crate) fn map_user(user: u32, group: u32) -> Result<(), Errno> {
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("1000 {user} 1"))?;
    write("/proc/self/gid_map", &format!("1000 {group} 1"))
}

fn empty_root() -> Result<(), Errno> {
    let nothing = None::<&str>;
    let locked = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)?;
    mount(Some("root"), "/tmp", Some("tmpfs"), locked, Some("size=4k,nr_inodes=2,mode=555"))?;
    chdir("/tmp")?;
    // The old root goes below the new one, and is taken away from there.
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    let read_only = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | locked;
    mount(nothing, "/", nothing, read_only, nothing)
}

fn write(path: &str, text: &str) -> Result<(), Errno> {
    let mut file = File::options().write(true).open(path).map_err(errno_of)?;
    file.write_all(text.as_bytes()).map_err(errno_of)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub(crate) fn errno_of(error: std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
