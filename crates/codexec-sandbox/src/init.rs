//! The first process of a worker for programs. Init is process 1 of the worker's PID namespace, so
//! all other processes die with it. Init applies the last layers, starts the guest, reaps zombies,
//! and reports the wait status of the guest's first process to the host.

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
use nix::unistd::{chdir, dup2_stderr, dup2_stdin, dup2_stdout};

use crate::control::{self, FirstProcess, FromInit, NAMESPACES, PROXY_PORT, ProgramGuest};
use crate::rootfs::{self, BOX, TEMPORARY, WORK};
use crate::shared_layers::{errno_of, map_user};
use crate::{Launch, Layer, LayerError, Rootfs, overlay, ruleset, seccomp, sys};

/// The launch parameters of a worker for programs.
pub(crate) struct InitLaunch {
    pub(crate) launch: Launch,
    pub(crate) program: ProgramGuest,
    /// The socket to the host.
    pub(crate) control: OwnedFd,
    /// The guest's socket, its stdin, stdout and stderr, and the mounts.
    pub(crate) fds: Vec<OwnedFd>,
}

pub(crate) fn serve(init: InitLaunch) -> ! {
    let InitLaunch { launch, program, control, fds } = init;
    let mut fds = fds.into_iter();
    let (Some(channel), Some(input), Some(out), Some(err)) =
        (fds.next(), fds.next(), fds.next(), fds.next())
    else {
        sys::exit_now(1)
    };
    let mounts: Vec<OwnedFd> = fds.collect();
    let channel = UnixStream::from(channel);
    match confine(&launch, &program, [&control, &input, &out, &err], &channel, &mounts) {
        Ok(Confined { rules, cells }) => {
            drop((input, out, err, mounts));
            let open_files = launch.rlimits.open_files;
            let limits = guest::GuestLimits { rules: rules.as_ref(), open_files };
            let result = guest::run(program.first, limits, &control, channel, cells);
            sys::exit_now(i32::from(result.is_err()))
        }
        Err(broken) => {
            let _ = control::send(control.as_fd(), &FromInit::Broken(broken), &[]);
            sys::exit_now(1)
        }
    }
}

/// The descriptors that init needs after confining itself.
struct Confined {
    rules: Option<OwnedFd>,
    /// The folder for the cells, in a session of a shell.
    cells: Option<OwnedFd>,
}

/// Applies all layers but Landlock and the limit on open files, which apply only to the guest.
fn confine(
    launch: &Launch,
    program: &ProgramGuest,
    [control, input, out, err]: [&OwnedFd; 4],
    channel: &UnixStream,
    mounts: &[OwnedFd],
) -> Result<Confined, LayerError> {
    let require = |layer: Layer, step: &str, result: Result<(), Errno>| match result {
        Err(errno) if !launch.lowered.contains(&layer) => {
            Err(LayerError::new(layer, step, errno as i32))
        }
        Ok(()) | Err(_) => Ok(()),
    };
    require(Layer::Pid, "die with the keeper", prctl::set_pdeathsig(Signal::SIGKILL))?;
    let mut kept: Vec<BorrowedFd<'_>> = vec![control.as_fd(), channel.as_fd()];
    kept.extend([input.as_fd(), out.as_fd(), err.as_fd()]);
    kept.extend(mounts.iter().map(OwnedFd::as_fd));
    require(Layer::User, "close inherited descriptors", sys::close_all_but(&kept))?;
    let streams = dup2_stdin(input).and_then(|()| dup2_stdout(out)).and_then(|()| dup2_stderr(err));
    require(Layer::User, "redirect the standard streams", streams)?;
    // Dumpable only until below, so that we own our /proc files and can write the id maps.
    let mapped = prctl::set_dumpable(true).and_then(|()| map_user(1000, 1000));
    require(Layer::User, "map the user", mapped)?;
    let rootfs = launch.rootfs.as_ref();
    let rootfs = rootfs.ok_or_else(|| LayerError::new(Layer::Root, "no rootfs in the plan", 0))?;
    require(Layer::Root, "mount the workspace", mount_workspace(rootfs))?;
    require(Layer::Root, "attach the mounts", attach(&program.mounts, mounts))?;
    let mut cells = None;
    if program.is_session && matches!(program.first, FirstProcess::Scripted(_)) {
        let folder = mount_cells_folder().map(|folder| cells = Some(folder));
        require(Layer::Root, "mount the folder of cells", folder)?;
    }
    let parents = overlay::make_parents_tmpfs()
        .map_err(|errno| LayerError::new(Layer::Root, "make a tmpfs", errno as i32))?;
    let fetches = matches!(program.first, FirstProcess::Fetches(_));
    let opened = open_ready_fds(fetches, program.first == FirstProcess::Enters, &parents)?;
    // THREAT[ESC-2]: covers the host's /proc entirely.
    require(Layer::Pid, "mount /proc", rootfs::mount_proc("subset=pid"))?;
    require(Layer::Root, "enter the workspace", chdir(WORK))?;
    let (rules, created) = match ruleset::for_programs(fetches.then_some(PROXY_PORT), &parents) {
        Ok(rules) => (Some(rules), Ok(())),
        Err(errno) => (None, Err(errno)),
    };
    require(Layer::Landlock, "create the ruleset", created)?;
    let profile = if fetches { seccomp::Profile::Fetching } else { seccomp::Profile::Programs };
    require(Layer::Rlimits, "setrlimit", set_rlimits(launch, program))?;
    require(Layer::Capabilities, "drop", sys::drop_capabilities())?;
    // THREAT[ESC-3]: the guest cannot ptrace this process.
    require(Layer::User, "become undumpable", prctl::set_dumpable(false))?;
    require(Layer::Seccomp, "load the filter", seccomp::load_filter(profile))?;
    let mut fds: Vec<BorrowedFd<'_>> = opened.iter().map(OwnedFd::as_fd).collect();
    if program.first == FirstProcess::Enters {
        fds.extend(rules.as_ref().map(OwnedFd::as_fd));
    }
    let sent = control::send(control.as_fd(), &FromInit::Ready, &fds);
    require(Layer::Pid, "send `Ready` to the host", sent.map_err(errno_of))?;
    Ok(Confined { rules, cells })
}

/// The folder of a shell's cells.
const CELLS: &str = "/box/cells";

/// Mounts a folder that only this process can write, through the returned descriptor. The guest,
/// which is the same user, sees a read-only mount that it cannot list.
///
/// THREAT[SES-6], THREAT[SES-8]: a guest cannot plant or replace the files of a cell.
fn mount_cells_folder() -> Result<OwnedFd, Errno> {
    let nothing = None::<&str>;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    fs::create_dir(CELLS).map_err(errno_of)?;
    mount(Some("cells"), CELLS, Some("tmpfs"), flags, Some("size=64m,nr_inodes=1k,mode=311"))?;
    // O_PATH, because the mode does not allow reading the folder.
    let how = nix::fcntl::OFlag::O_PATH | nix::fcntl::OFlag::O_CLOEXEC;
    let folder = nix::fcntl::open(CELLS, how, nix::sys::stat::Mode::empty())?;
    bind(Path::new(CELLS), Path::new(CELLS))?;
    let read_only = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY;
    mount(nothing, CELLS, nothing, read_only, nothing)?;
    Ok(folder)
}

/// Opens the descriptors that are attached to [`FromInit::Ready`], except for the ruleset.
fn open_ready_fds(
    fetches: bool,
    enters: bool,
    parents: &OwnedFd,
) -> Result<Vec<OwnedFd>, LayerError> {
    let mut fds: Vec<OwnedFd> =
        vec![open(Path::new(WORK), Layer::Root)?, open(Path::new(BOX), Layer::Root)?];
    if fetches {
        // Required even if the layer is lowered: otherwise the guest would share a network with
        // other guests.
        let listener = network::unshare_with_listener().map_err(|errno| {
            LayerError::new(Layer::Network, "make a network for one listener", errno as i32)
        })?;
        fds.push(listener);
        return Ok(fds);
    }
    let namespaces = if enters { NAMESPACES.as_slice() } else { &[] };
    for name in ["user", "mnt"] {
        fds.push(open(&Path::new("/proc/self/ns").join(name), Layer::User)?);
    }
    let parents = parents.try_clone().map_err(errno_of);
    fds.push(parents.map_err(|errno| LayerError::new(Layer::Root, "make a tmpfs", errno as i32))?);
    for name in namespaces {
        fds.push(open(&Path::new("/proc/self/ns").join(name), Layer::User)?);
    }
    Ok(fds)
}

/// Sets all rlimits but the one on open files.
///
/// THREAT[RES-7]: the kernel counts descriptors in flight per user, for all guests together, and
/// checks them against the sender's limit. Init must be able to send when guests have used theirs.
fn set_rlimits(launch: &Launch, program: &ProgramGuest) -> Result<(), Errno> {
    for (resource, limit) in launch.rlimits.numbers() {
        let is_left_out =
            resource == libc::RLIMIT_NOFILE || (resource == libc::RLIMIT_CPU && program.is_session);
        if !is_left_out {
            sys::lower_limit(resource, limit)?;
        }
    }
    Ok(())
}

/// Mounts one tmpfs of bounded size for all that the guest writes, temporary files included.
fn mount_workspace(rootfs: &Rootfs) -> Result<(), Errno> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    let options = format!("size={},nr_inodes={},mode=755", rootfs.disk_bytes, rootfs.disk_files);
    mount(Some("box"), BOX, Some("tmpfs"), flags, Some(options.as_str()))?;
    for name in ["work", "tmp", "home", "packages", "top"] {
        fs::create_dir(Path::new(BOX).join(name)).map_err(errno_of)?;
    }
    let temporary = Path::new(BOX).join("tmp");
    fs::set_permissions(&temporary, Permissions::from_mode(0o1777)).map_err(errno_of)?;
    // The mount on /tmp would cover what the rootfs has there, such as an interpreter.
    let covered = rootfs.shown.iter().filter(|path| path.starts_with(TEMPORARY));
    let covered: Vec<(&PathBuf, File)> =
        covered.filter_map(|path| Some((path, File::open(path).ok()?))).collect();
    bind(&temporary, Path::new(TEMPORARY))?;
    for (path, file) in covered {
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
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

fn open(path: &Path, layer: Layer) -> Result<OwnedFd, LayerError> {
    let opened = File::open(path).map_err(errno_of);
    opened
        .map(OwnedFd::from)
        .map_err(|errno| LayerError::new(layer, "open a namespace", errno as i32))
}
