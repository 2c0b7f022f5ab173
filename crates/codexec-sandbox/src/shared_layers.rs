//! The layers that many workers share. They are built once, before any request needs them.

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

use crate::{Launch, Layer, LayerError, MissingLayer, Rootfs, rootfs, ruleset, seccomp, sys};

/// Applies all shared layers in a keeper whose workers need no files. A lowered layer is tried
/// all the same, and reported if it is missing.
pub(crate) fn confine_keeper(launch: &Launch) -> Result<Vec<MissingLayer>, LayerError> {
    let mut layers = LayerBuilder::new(&launch.lowered);
    layers.apply(Layer::User, "detach from the terminal", detach_from_terminal)?;
    layers.apply(Layer::User, "become an unprivileged user", || drop_root(launch.uid))?;
    layers.apply(Layer::User, "unshare a user namespace", unshare_user)?;
    layers.apply(Layer::Mount, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWNS))?;
    layers.unshare_network()?;
    layers.unshare_names(&launch.hostname)?;
    // THREAT[ESC-2]: none of the host's files can be read.
    layers.apply(Layer::Root, "pivot into an empty root", pivot_to_empty_root)?;
    layers.apply(Layer::NoNewPrivileges, "prctl", prctl::set_no_new_privs)?;
    layers.apply(Layer::Landlock, "restrict", ruleset::deny_all)?;
    // Processes with our user id cannot ptrace this process or its workers.
    layers.apply(Layer::User, "become undumpable", || prctl::set_dumpable(false))?;
    Ok(layers.missing)
}

/// Puts a zygote of programs into the rootfs, in which all its keepers and workers run.
pub(crate) fn enter_rootfs(
    launch: &Launch,
    rootfs: &Rootfs,
) -> Result<Vec<MissingLayer>, LayerError> {
    let mut layers = LayerBuilder::new(&launch.lowered);
    layers.apply(Layer::User, "detach from the terminal", detach_from_terminal)?;
    // A guest of a plain user sees only what that user can read. Root builds the rootfs before it
    // drops its rights, so that a guest can run an interpreter in a private directory.
    let is_root = geteuid().is_root();
    if is_root {
        layers.apply(Layer::Mount, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWNS))?;
        layers.apply(Layer::Root, "build the rootfs", || rootfs::enter(rootfs))?;
        layers.apply(Layer::User, "become an unprivileged user", || drop_root(launch.uid))?;
    }
    layers.apply(Layer::User, "unshare a user namespace", unshare_user)?;
    layers.apply(Layer::Mount, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWNS))?;
    if !is_root {
        layers.apply(Layer::Root, "build the rootfs", || rootfs::enter(rootfs))?;
    }
    layers.unshare_network()?;
    layers.unshare_names(&launch.hostname)?;
    layers.apply(Layer::NoNewPrivileges, "prctl", prctl::set_no_new_privs)?;
    if let Some(bytes) = launch.data_bytes {
        // THREAT[RES-9]: all descendants of the zygote inherit both, in every language.
        layers
            .apply(Layer::Rlimits, "limit data", || sys::lower_limit(libc::RLIMIT_DATA, bytes))?;
        layers.apply(Layer::Seccomp, "refuse shared memory", seccomp::refuse_shared_memory)?;
    }
    layers.unshare_processes()?;
    // Each worker creates its own ruleset; checking for Landlock once is enough.
    layers.apply(Layer::Landlock, "make the rules", ruleset::check_support)?;
    // Programs in the rootfs have our user id, and must not ptrace this process.
    layers.apply(Layer::User, "become undumpable", || prctl::set_dumpable(false))?;
    Ok(layers.missing)
}

/// Confines a foreign program in the rootfs that forks guests: like its guests, except that the
/// program may enter the namespaces of workers.
///
/// THREAT[ZYG-1]: the layers are in force before the program starts and imports anything.
pub(crate) fn confine_forking_program(lowered: &[Layer]) -> Result<(), LayerError> {
    let mut layers = LayerBuilder::new(lowered);
    layers.apply(Layer::User, "begin a session", || setsid().map(drop))?;
    layers.apply(Layer::Mount, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWNS))?;
    // hidepid hides what the program cannot ptrace: the zygote and the keepers, which share its
    // PID namespace.
    let others_hidden = "subset=pid,hidepid=2";
    layers.apply(Layer::Pid, "mount /proc", || rootfs::mount_proc(others_hidden))?;
    layers.apply(Layer::Landlock, "restrict", ruleset::deny_signals)?;
    // Without the user layer, entering a worker's user namespace grants no capabilities.
    let needed: &[u32] = if lowered.contains(&Layer::User) {
        &[CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SETPCAP]
    } else {
        &[CAP_SYS_ADMIN]
    };
    layers.apply(Layer::Capabilities, "keep the needed ones", || sys::keep_capabilities(needed))?;
    layers.apply(Layer::Seccomp, "load the filter", || {
        seccomp::load_filter(seccomp::Profile::Entering)
    })
}

/// Entering a namespace needs `CAP_SYS_ADMIN`; a mount namespace also `CAP_SYS_CHROOT`. Dropping
/// capabilities from the bounding set needs `CAP_SETPCAP`.
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_CHROOT: u32 = 18;
const CAP_SETPCAP: u32 = 8;

/// Applies the layers that no two slots share, in a keeper in a rootfs.
pub(crate) fn isolate_slot(launch: &Launch) -> Result<Vec<MissingLayer>, LayerError> {
    let mut layers = LayerBuilder::new(&launch.lowered);
    layers.unshare_network()?;
    layers.apply(Layer::User, "become undumpable", || prctl::set_dumpable(false))?;
    Ok(layers.missing)
}

/// Applies layers one by one, and collects the missing ones.
struct LayerBuilder<'a> {
    lowered: &'a [Layer],
    missing: Vec<MissingLayer>,
}

impl<'a> LayerBuilder<'a> {
    fn new(lowered: &'a [Layer]) -> LayerBuilder<'a> {
        LayerBuilder { lowered, missing: Vec::new() }
    }

    fn apply(
        &mut self,
        layer: Layer,
        step: &str,
        build: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), LayerError> {
        let Err(errno) = build() else { return Ok(()) };
        if !self.lowered.contains(&layer) {
            return Err(LayerError::new(layer, step, errno as i32));
        }
        let reason = format!("{step}: {}", errno.desc());
        if self.missing.iter().all(|missing| missing.layer != layer) {
            self.missing.push(MissingLayer { layer, reason });
        }
        Ok(())
    }

    /// THREAT[NET-1]: no interface of the new namespace is up.
    fn unshare_network(&mut self) -> Result<(), LayerError> {
        let step = "unshare the namespace";
        self.apply(Layer::Network, step, || unshare(CloneFlags::CLONE_NEWNET))
    }

    /// Makes the zygote the first process of a PID namespace for its keepers and programs.
    fn unshare_processes(&mut self) -> Result<(), LayerError> {
        self.apply(Layer::Pid, "unshare the namespace", || unshare(CloneFlags::CLONE_NEWPID))?;
        if self.missing.iter().any(|missing| missing.layer == Layer::Pid) {
            return Ok(());
        }
        self.apply(Layer::Pid, "become its first process", sys::continue_in_child)
    }

    fn unshare_names(&mut self, hostname: &str) -> Result<(), LayerError> {
        for (layer, flag) in [
            (Layer::Ipc, CloneFlags::CLONE_NEWIPC),
            (Layer::Uts, CloneFlags::CLONE_NEWUTS),
            (Layer::CgroupNamespace, CloneFlags::CLONE_NEWCGROUP),
        ] {
            self.apply(layer, "unshare the namespace", || unshare(flag))?;
        }
        self.apply(Layer::Uts, "set the host name", || sethostname(hostname))
    }
}

/// Detaches from the terminal, which could be injected into, and from the server's output.
fn detach_from_terminal() -> Result<(), Errno> {
    // EPERM means that we are a process-group leader. That happens only under a debugger, where
    // there is no terminal to lose.
    setsid().map(drop).or_else(|errno| if errno == Errno::EPERM { Ok(()) } else { Err(errno) })?;
    let null = File::options().read(true).write(true).open("/dev/null").map_err(errno_of)?;
    dup2_stdin(null.as_fd())?;
    dup2_stdout(null.as_fd())?;
    dup2_stderr(null.as_fd())
}

/// THREAT[ESC-5]: no guest runs as the host's root, not even inside the sandbox.
fn drop_root(uid: u32) -> Result<(), Errno> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    setgroups(&[])?;
    setresgid(group, group, group)?;
    setresuid(user, user, user)?;
    // After the change of user, root owns our /proc files, the id maps included. This undoes that.
    prctl::set_dumpable(true)
}

fn unshare_user() -> Result<(), Errno> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    map_user(user, group)
}

/// Maps this user to user 1000 in a new user namespace.
pub(crate) fn map_user(user: u32, group: u32) -> Result<(), Errno> {
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("1000 {user} 1"))?;
    write("/proc/self/gid_map", &format!("1000 {group} 1"))
}

fn pivot_to_empty_root() -> Result<(), Errno> {
    let nothing = None::<&str>;
    let locked = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing)?;
    mount(Some("root"), "/tmp", Some("tmpfs"), locked, Some("size=4k,nr_inodes=2,mode=555"))?;
    chdir("/tmp")?;
    // The old root is stacked on the new one, and then unmounted.
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

#[expect(clippy::needless_pass_by_value, reason = "map_err passes the error by value")]
pub(crate) fn errno_of(error: std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}
