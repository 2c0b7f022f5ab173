//! The first process of a worker for programs. It lives in the worker's namespaces as process 1,
//! so that everything else in there dies with it; it raises the last walls, starts the guest,
//! buries the dead, and tells the host how the guest's first process ended.

mod guest;
mod network;
mod shell;
mod signals;

use std::fs::{self, File, Permissions};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{chdir, dup2_stderr, dup2_stdout};

use crate::control::{self, First, FromInit, NAMESPACES, PROXY_PORT, Program};
use crate::hull::{errno_of, map_user};
use crate::tree::{BOX, TEMPORARY, WORK};
use crate::{Broken, Launch, Layer, Room, overlay, ruleset, seccomp, sys};

/// What a worker for programs is born with.
pub(crate) struct Born {
    pub(crate) launch: Launch,
    pub(crate) program: Program,
    /// To the host.
    pub(crate) control: OwnedFd,
    /// The guest's socket, its output and error, and the mounts.
    pub(crate) fds: Vec<OwnedFd>,
}

pub(crate) fn serve(born: Born) -> ! {
    let Born { launch, program, control, fds } = born;
    let mut fds = fds.into_iter();
    let (Some(channel), Some(out), Some(err)) = (fds.next(), fds.next(), fds.next()) else {
        sys::exit_now(1)
    };
    let mounts: Vec<OwnedFd> = fds.collect();
    let channel = UnixStream::from(channel);
    match raise_walls(&launch, &program, [&control, &out, &err], &channel, &mounts) {
        Ok(rules) => {
            drop((out, err, mounts));
            let walls =
                guest::Walls { rules: rules.as_ref(), open_files: launch.rlimits.open_files };
            let ran = guest::run(program.first, walls, &control, channel);
            sys::exit_now(i32::from(ran.is_err()))
        }
        Err(broken) => {
            let _ = control::send(control.as_fd(), &FromInit::Broken(broken), &[]);
            sys::exit_now(1)
        }
    }
}

/// All of them but Landlock and the limit on open files, which are for the guest alone.
fn raise_walls(
    launch: &Launch,
    program: &Program,
    [control, out, err]: [&OwnedFd; 3],
    channel: &UnixStream,
    mounts: &[OwnedFd],
) -> Result<Option<OwnedFd>, Broken> {
    let raise = |layer: Layer, step: &str, result: Result<(), Errno>| match result {
        Err(errno) if !launch.lowered.contains(&layer) => {
            Err(Broken::new(layer, step, errno as i32))
        }
        Ok(()) | Err(_) => Ok(()),
    };
    raise(Layer::Pid, "die with the keeper", prctl::set_pdeathsig(Signal::SIGKILL))?;
    let mut kept: Vec<BorrowedFd<'_>> = vec![control.as_fd(), channel.as_fd()];
    kept.extend([out.as_fd(), err.as_fd()]);
    kept.extend(mounts.iter().map(OwnedFd::as_fd));
    raise(Layer::User, "close what is not the guest's", sys::close_all_but(&kept))?;
    let output = dup2_stdout(out).and_then(|()| dup2_stderr(err));
    raise(Layer::User, "take the guest's output", output)?;
    // Only for a moment: our own /proc files are ours again.
    let mapped = prctl::set_dumpable(true).and_then(|()| map_user(1000, 1000));
    raise(Layer::User, "map the user", mapped)?;
    let room = launch.room.as_ref().ok_or_else(|| Broken::new(Layer::Root, "no room", 0))?;
    raise(Layer::Root, "mount the workspace", workspace(room))?;
    raise(Layer::Root, "mount what it is shown", attach(&program.mounts, mounts))?;
    let place = overlay::make_place()
        .map_err(|errno| Broken::new(Layer::Root, "make a place", errno as i32))?;
    let fetches = matches!(program.first, First::Fetches(_));
    let shown = show(fetches, program.first == First::Enters, &place)?;
    raise(Layer::Pid, "mount a view of processes", own_processes())?;
    raise(Layer::Root, "enter the workspace", chdir(WORK))?;
    let (rules, is_ruled) = match ruleset::for_programs(fetches.then_some(PROXY_PORT), &place) {
        Ok(rules) => (Some(rules), Ok(())),
        Err(errno) => (None, Err(errno)),
    };
    raise(Layer::Landlock, "make the rules", is_ruled)?;
    let calls = if fetches { seccomp::Calls::Fetching } else { seccomp::Calls::Programs };
    raise(Layer::Rlimits, "setrlimit", rlimits(launch, program))?;
    raise(Layer::Capabilities, "drop", sys::drop_capabilities())?;
    // THREAT[ESC-3]: the guest cannot look into this process.
    raise(Layer::User, "become undumpable", prctl::set_dumpable(false))?;
    raise(Layer::Seccomp, "load the filter", seccomp::confine(calls))?;
    let mut beside: Vec<BorrowedFd<'_>> = shown.iter().map(OwnedFd::as_fd).collect();
    if program.first == First::Enters {
        beside.extend(rules.as_ref().map(OwnedFd::as_fd));
    }
    let said = control::send(control.as_fd(), &FromInit::Ready, &beside);
    raise(Layer::Pid, "tell the host", said.map_err(errno_of))?;
    Ok(rules)
}

/// Collects what the host gets beside [`FromInit::Ready`], but for the rules.
fn show(fetches: bool, enters: bool, place: &OwnedFd) -> Result<Vec<OwnedFd>, Broken> {
    let mut shown: Vec<OwnedFd> = vec![open(Path::new(WORK), Layer::Root)?];
    if fetches {
        // Never let go: without a network of its own it would be in one with others.
        let listener = network::own().map_err(|errno| {
            Broken::new(Layer::Network, "make a network for one listener", errno as i32)
        })?;
        shown.push(listener);
        return Ok(shown);
    }
    let of_all = if enters { NAMESPACES.as_slice() } else { &[] };
    for name in ["user", "mnt"] {
        shown.push(open(&Path::new("/proc/self/ns").join(name), Layer::User)?);
    }
    let place = place.try_clone().map_err(errno_of);
    shown.push(place.map_err(|errno| Broken::new(Layer::Root, "make a place", errno as i32))?);
    for name in of_all {
        shown.push(open(&Path::new("/proc/self/ns").join(name), Layer::User)?);
    }
    Ok(shown)
}

/// THREAT[RES-7]: descriptors on their way are counted for all guests together, against the limit
/// of whoever sends one. We have to be able to send when a guest has used up its own.
fn rlimits(launch: &Launch, program: &Program) -> Result<(), Errno> {
    for (resource, limit) in launch.rlimits.numbers() {
        let is_left_out =
            resource == libc::RLIMIT_NOFILE || (resource == libc::RLIMIT_CPU && program.is_session);
        if !is_left_out {
            sys::limit(resource, limit)?;
        }
    }
    Ok(())
}

/// One bounded file system for all that the guest writes, temporary files included.
fn workspace(room: &Room) -> Result<(), Errno> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options = format!("size={},nr_inodes={},mode=755", room.disk_bytes, room.disk_files);
    mount(Some("box"), BOX, Some("tmpfs"), flags, Some(options.as_str()))?;
    for name in ["work", "tmp", "home", "packages", "top"] {
        fs::create_dir(Path::new(BOX).join(name)).map_err(errno_of)?;
    }
    let temporary = Path::new(BOX).join("tmp");
    fs::set_permissions(&temporary, Permissions::from_mode(0o1777)).map_err(errno_of)?;
    // What the room shows there would be covered: an interpreter may live anywhere.
    let covered = room.shown.iter().filter(|path| path.starts_with(TEMPORARY));
    let covered: Vec<(&PathBuf, File)> =
        covered.filter_map(|path| Some((path, File::open(path).ok()?))).collect();
    bind(&temporary, Path::new(TEMPORARY))?;
    for (path, file) in covered {
        if file.metadata().is_ok_and(|found| found.is_dir()) {
            fs::create_dir_all(path).map_err(errno_of)?;
            bind(&Path::new("/proc/self/fd").join(file.as_raw_fd().to_string()), path)?;
        }
    }
    Ok(())
}

fn bind(source: &Path, target: &Path) -> Result<(), Errno> {
    let nothing = None::<&str>;
    mount(Some(source), target, nothing, MsFlags::MS_BIND, nothing)
}

fn attach(targets: &[PathBuf], mounts: &[OwnedFd]) -> Result<(), Errno> {
    if targets.len() != mounts.len() {
        return Err(Errno::EINVAL);
    }
    for (target, tree) in targets.iter().zip(mounts) {
        let target = std::ffi::CString::new(target.as_os_str().as_bytes());
        sys::move_mount(tree.as_fd(), &target.map_err(|_| Errno::EINVAL)?)?;
    }
    Ok(())
}

/// THREAT[ESC-2]: of the host's view of its processes nothing stays visible. Where the kernel
/// gives us no view of our own, there is none.
fn own_processes() -> Result<(), Errno> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, Some("subset=pid")).or_else(|_| {
        let options = Some("size=0,nr_inodes=1,mode=555");
        mount(Some("none"), "/proc", Some("tmpfs"), flags | MsFlags::MS_RDONLY, options)
    })
}

fn open(path: &Path, layer: Layer) -> Result<OwnedFd, Broken> {
    let opened = File::open(path).map_err(errno_of);
    opened.map(OwnedFd::from).map_err(|errno| Broken::new(layer, "open a namespace", errno as i32))
}
