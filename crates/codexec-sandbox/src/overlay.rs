//! Shows a worker a directory of the user's: an overlay whose lower layer is the directory,
//! read-only, and whose upper layer takes what the guest writes.
//!
//! A child of the keeper does it, in the namespaces of a worker that waits or lives. The layers
//! are mounted in a copy of the worker's mount namespace, the *stage*, which no process of the
//! worker is in: the guest has no path to them but through the overlay. The overlay is then copied
//! from the stage to the worker.

mod real_path;

use std::ffi::CStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, umask};

use crate::hull::errno_of;
use crate::mounter::{NO_DEVICES, NO_SETUID};
use crate::tree::WORK;
use crate::{Broken, FromKeeper, Layer, Overlay, OverlayRenewal, OverlayRequest, sys};

/// Where the stage has its own mounts; nothing of a room is needed from there.
const STAGE: &str = "/proc";
const LOWER: &CStr = c"/proc/lower";
const MERGED: &CStr = c"/proc/merged";
const LAYERS: &str = "/proc/layers";
const FOLDERS: [&str; 4] = ["lower", "merged", "layers", "empty"];

/// What a helper has mounted.
struct Done {
    is_at_real_path: bool,
    /// The stage and the layers, for the first time.
    beside: Vec<OwnedFd>,
}

/// Does what the host asked for, tells the host, and ends.
pub(crate) fn serve(host: BorrowedFd<'_>, request: &OverlayRequest, fds: Vec<OwnedFd>) -> ! {
    let said = match mount_in_worker(request, fds) {
        Ok(Done { is_at_real_path, beside }) => {
            let beside: Vec<_> = beside.iter().map(OwnedFd::as_fd).collect();
            FromKeeper::Mounted { is_at_real_path }.send(host, &beside)
        }
        Err(broken) => FromKeeper::NotMounted(broken).send(host, &[]),
    };
    sys::exit_now(i32::from(said.is_err()))
}

/// Makes the file system on which the folders of a real path are made, before it is known which:
/// Landlock's rules are fixed before a worker is given a directory.
pub(crate) fn make_place() -> Result<OwnedFd, Errno> {
    let options = [(c"size", c"256k"), (c"nr_inodes", c"1k"), (c"mode", c"755")];
    sys::new_tmpfs(&options, NO_SETUID | NO_DEVICES)
}

fn mount_in_worker(request: &OverlayRequest, fds: Vec<OwnedFd>) -> Result<Done, Broken> {
    let [user, worker, lower, given] = <[OwnedFd; 4]>::try_from(fds)
        .map_err(|_| Broken::new(Layer::Mount, "too few descriptors", Errno::EINVAL as i32))?;
    step("die with the keeper", prctl::set_pdeathsig(Signal::SIGKILL))?;
    umask(Mode::from_bits_truncate(0o022));
    // What is in here is of this process, wherever it goes. As a keeper's child is undumpable,
    // the folder is root's, and can be passed through but not read.
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let own = step("open the namespaces", open("/proc/self/ns", flags, Mode::empty()))?;
    // Where the user layer is lowered, the worker is in the keeper's namespace.
    let entered = setns(&user, CloneFlags::CLONE_NEWUSER);
    step("enter the worker", entered.or_else(|errno| ignored(errno, Errno::EINVAL)))?;
    let worker = worker.as_fd();
    match request.renewal {
        None => begin(&request.overlay, &own, worker, &lower, &given),
        Some(renewal) => renew(&request.overlay, renewal, worker, &lower, &given),
    }
}

fn begin(
    overlay: &Overlay,
    own: &OwnedFd,
    worker: BorrowedFd<'_>,
    lower: &OwnedFd,
    place: &OwnedFd,
) -> Result<Done, Broken> {
    step("enter the worker", setns(worker, CloneFlags::CLONE_NEWNS))?;
    step("make the stage", make_stage())?;
    let mut beside = vec![step("open the stage", open_at(own, "mnt"))?];
    if overlay.is_writable {
        beside.push(step("make the layers", make_layers(overlay))?);
    }
    step("mount the overlay", mount_overlay(overlay, 0, lower))?;
    let copy = step("copy the overlay", copy_overlay())?;
    // Where the directory cannot be shown at its real path, it is at the other one.
    let shown = real_path::prepare(&overlay.real_path, place, MERGED).ok();
    step("go back to the worker", setns(worker, CloneFlags::CLONE_NEWNS))?;
    step("show the overlay", sys::move_mount(copy.as_fd(), WORK_TEXT))?;
    let is_at_real_path = shown.is_some_and(|shown| shown.attach().is_ok());
    Ok(Done { is_at_real_path, beside })
}

/// Until the new overlay is complete, the worker keeps the old one.
fn renew(
    overlay: &Overlay,
    renewal: OverlayRenewal,
    worker: BorrowedFd<'_>,
    lower: &OwnedFd,
    stage: &OwnedFd,
) -> Result<Done, Broken> {
    step("enter the stage", setns(stage, CloneFlags::CLONE_NEWNS))?;
    for old in [MERGED, LOWER] {
        step("clear the stage", umount2(old, MntFlags::MNT_DETACH))?;
    }
    step("mount the overlay", mount_overlay(overlay, renewal.generation, lower))?;
    let copies = [step("copy the overlay", copy_overlay())?, step("copy it", copy_overlay())?];
    let real_path = renewal.is_at_real_path.then(|| real_path::inside(&overlay.real_path));
    let real_path = step("find the real path", real_path.transpose())?;
    step("go back to the worker", setns(worker, CloneFlags::CLONE_NEWNS))?;
    let paths = [real_path, Some(PathBuf::from(WORK))];
    for (copy, path) in copies.iter().zip(paths) {
        if let Some(path) = path {
            step("replace the overlay", replace(copy, &path))?;
        }
    }
    Ok(Done { is_at_real_path: renewal.is_at_real_path, beside: Vec::new() })
}

const WORK_TEXT: &CStr = c"/box/work";

/// THREAT[FIL-9]: the layers are mounted where no process of the guest's is. From here on this
/// process is in a copy of the worker's mount namespace.
fn make_stage() -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let options = Some("size=16k,nr_inodes=8,mode=700");
    mount(Some("stage"), STAGE, Some("tmpfs"), NO_RIGHTS, options)?;
    let make = |name| fs::create_dir(Path::new(STAGE).join(name)).map_err(errno_of);
    FOLDERS.into_iter().try_for_each(make)
}

/// THREAT[FIL-8]: what a guest writes in the user's directory is bounded in bytes and files, apart
/// from everything else that it writes.
fn make_layers(overlay: &Overlay) -> Result<OwnedFd, Errno> {
    let options = format!("size={},nr_inodes={},mode=700", overlay.max_bytes, overlay.max_files);
    mount(Some("layers"), LAYERS, Some("tmpfs"), NO_RIGHTS, Some(options.as_str()))?;
    File::open(LAYERS).map(OwnedFd::from).map_err(errno_of)
}

/// THREAT[FIL-3]: a socket or pipe of the lower layer is another one in the overlay, which no
/// process of the host's has opened.
fn mount_overlay(overlay: &Overlay, generation: u32, lower: &OwnedFd) -> Result<(), Errno> {
    sys::move_mount(lower.as_fd(), LOWER)?;
    let mut options = "lowerdir=/proc/lower,userxattr,index=off".to_owned();
    if overlay.is_writable {
        let layer = |name: &str| format!("{LAYERS}/{name}-{generation}");
        let (upper, work) = (layer("upper"), layer("work"));
        make_dir(&upper)?;
        make_dir(&work)?;
        // The overlay's root shows what the upper layer's has.
        let mode = fs::metadata("/proc/lower").map_err(errno_of)?.mode() & 0o777;
        fs::set_permissions(&upper, Permissions::from_mode(mode)).map_err(errno_of)?;
        options = format!("{options},upperdir={upper},workdir={work}");
    } else {
        options = options.replace("/proc/lower", "/proc/lower:/proc/empty");
    }
    mount(Some("overlay"), MERGED, Some("overlay"), NO_RIGHTS, Some(options.as_str()))
}

fn make_dir(path: &str) -> Result<(), Errno> {
    fs::create_dir(path).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Ok(()),
        _ => Err(errno_of(error)),
    })
}

fn copy_overlay() -> Result<OwnedFd, Errno> {
    sys::clone_tree(sys::open_without_links(MERGED)?.as_fd(), false)
}

fn replace(copy: &OwnedFd, path: &Path) -> Result<(), Errno> {
    let target = sys::open_without_links(&real_path::as_text(path)?)?;
    sys::mount_beneath(copy.as_fd(), target.as_fd())?;
    drop(target);
    umount2(path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW)
}

fn open_at(folder: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    openat(folder, name, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())
}

const NO_RIGHTS: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);

fn step<T>(name: &str, result: Result<T, Errno>) -> Result<T, Broken> {
    result.map_err(|errno| Broken::new(Layer::Mount, name, errno as i32))
}

fn ignored(errno: Errno, what: Errno) -> Result<(), Errno> {
    if errno == what { Ok(()) } else { Err(errno) }
}
