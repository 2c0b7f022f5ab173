//! Mounts a directory of the user in a worker, as an overlay: the lower layer is the directory,
//! read-only, and the upper layer takes the guest's writes.
//!
//! A child of the keeper does this in the namespaces of a waiting or running worker. For a waiting
//! worker it prepares what does not depend on the directory, and then waits for it. The layers
//! are mounted in a copy of the worker's mount namespace, the *stage*. No process of the worker is
//! in the stage, so the guest reaches the layers only through the overlay, which is then copied
//! from the stage to the worker.

mod file_limit;
mod old_layers;
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

use crate::control::receive;
use crate::mounter::{NO_DEVICES, NO_SETUID};
use crate::rootfs::WORK;
use crate::shared_layers::errno_of;
use crate::{
    FromKeeper, Layer, LayerError, LayerLimits, Overlay, OverlayRenewal, OverlayTask, sys,
};

/// The directory for the stage's own mounts. The stage needs nothing else from there.
const STAGE: &str = "/proc";
const LOWER: &CStr = c"/proc/lower";
const MERGED: &CStr = c"/proc/merged";
const LAYERS: &str = "/proc/layers";
const FOLDERS: [&str; 4] = ["lower", "merged", "layers", "empty"];

/// A mounted overlay.
struct MountedOverlay {
    is_at_real_path: bool,
    /// For a worker's first overlay: the stage, and the layers if there are any.
    fds: Vec<OwnedFd>,
}

/// Works on the overlay, reports the result to the host, and exits.
pub(crate) fn serve(host: BorrowedFd<'_>, task: OverlayTask, fds: Vec<OwnedFd>) -> ! {
    let sent = match work_in_worker(task, fds) {
        Ok(MountedOverlay { is_at_real_path, fds }) => {
            let fds: Vec<_> = fds.iter().map(OwnedFd::as_fd).collect();
            FromKeeper::Mounted { is_at_real_path }.send(host, &fds)
        }
        Err(broken) => FromKeeper::NotMounted(broken).send(host, &[]),
    };
    sys::exit_now(i32::from(sent.is_err()))
}

/// Makes a tmpfs for the parent folders of a real path. The tmpfs exists before the path is known,
/// because the Landlock rules are fixed before a worker gets a directory.
pub(crate) fn make_parents_tmpfs() -> Result<OwnedFd, Errno> {
    let options = [(c"size", c"256k"), (c"nr_inodes", c"1k"), (c"mode", c"755")];
    sys::new_tmpfs(&options, NO_SETUID | NO_DEVICES)
}

fn work_in_worker(task: OverlayTask, fds: Vec<OwnedFd>) -> Result<MountedOverlay, LayerError> {
    let mut fds = fds.into_iter();
    let mut next = || step("read the descriptors", fds.next().ok_or(Errno::EINVAL));
    let (user, worker) = (next()?, next()?);
    step("die with the keeper", prctl::set_pdeathsig(Signal::SIGKILL))?;
    umask(Mode::from_bits_truncate(0o022));
    // The folder keeps naming this process's namespaces, whichever it enters. Root owns the
    // folder, because a keeper's child is undumpable: it can be searched, but not read.
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let own = step("open the namespaces", open("/proc/self/ns", flags, Mode::empty()))?;
    // EINVAL: the user layer is lowered, and the worker is in the keeper's user namespace.
    let entered = setns(&user, CloneFlags::CLONE_NEWUSER);
    step("enter the worker", entered.or_else(|errno| ignore(errno, Errno::EINVAL)))?;
    let worker = worker.as_fd();
    match task {
        OverlayTask::Mount(limits) => mount_first(limits, &own, worker, &next()?, &next()?),
        OverlayTask::MakeRoom(limits) => make_room(limits, &next()?),
        OverlayTask::Renew(overlay, renewal) => {
            renew(&overlay, renewal, worker, &next()?, &next()?)
        }
    }
}

fn mount_first(
    limits: LayerLimits,
    own: &OwnedFd,
    worker: BorrowedFd<'_>,
    parents: &OwnedFd,
    overlay_source: &OwnedFd,
) -> Result<MountedOverlay, LayerError> {
    step("enter the worker", setns(worker, CloneFlags::CLONE_NEWNS))?;
    step("make the stage", make_stage())?;
    let mut fds = vec![step("open the stage", open_at(own, "mnt"))?];
    let layers = step("make the layers", make_layers(limits))?;
    step("make the first layer", make_layer_folders(0))?;
    let (overlay, lower) = step("receive the directory", receive_overlay(overlay_source))?;
    if overlay.is_writable {
        fds.push(layers);
    }
    step("mount the overlay", mount_overlay(&overlay, 0, &lower))?;
    let copy = step("copy the overlay", copy_overlay())?;
    // If the real path is not possible, the directory is only at /box/work.
    let prepared = real_path::prepare(&overlay.real_path, parents, MERGED).ok();
    step("go back to the worker", setns(worker, CloneFlags::CLONE_NEWNS))?;
    step("attach the overlay", sys::move_mount(copy.as_fd(), WORK_TEXT))?;
    let is_at_real_path = prepared.is_some_and(|mount| mount.attach().is_ok());
    Ok(MountedOverlay { is_at_real_path, fds })
}

/// Lets the host make folders in the layers, however many files the guest has made.
fn make_room(limits: LayerLimits, stage: &OwnedFd) -> Result<MountedOverlay, LayerError> {
    step("enter the stage", setns(stage, CloneFlags::CLONE_NEWNS))?;
    step("make room", file_limit::allow_one_more_layer(limits))?;
    Ok(MountedOverlay { is_at_real_path: false, fds: Vec::new() })
}

/// Replaces the overlay. The worker keeps the old one until the new one is complete, but the host has
/// committed the old layer and stopped the guest's processes, so its files are deleted before.
fn renew(
    overlay: &Overlay,
    renewal: OverlayRenewal,
    worker: BorrowedFd<'_>,
    stage: &OwnedFd,
    lower: &OwnedFd,
) -> Result<MountedOverlay, LayerError> {
    step("enter the stage", setns(stage, CloneFlags::CLONE_NEWNS))?;
    if overlay.is_writable {
        step("make room", file_limit::allow_one_more_layer(overlay.limits))?;
        // A read-only overlay no longer holds the files of its upper layer, so deleting them frees
        // them at once. If this fails because a file is in use, they are freed with the overlay, when
        // the guest's first process enters its current directory anew.
        let (nothing, flags) = (None::<&str>, MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY);
        let _ = mount(nothing, MERGED, nothing, flags.union(NO_RIGHTS), nothing);
    }
    for old in [MERGED, LOWER] {
        step("clear the stage", umount2(old, MntFlags::MNT_DETACH))?;
    }
    if overlay.is_writable {
        old_layers::delete(renewal.generation);
    }
    if overlay.is_writable {
        step("make the next layer", make_layer_folders(renewal.generation))?;
    }
    step("mount the overlay", mount_overlay(overlay, renewal.generation, lower))?;
    if overlay.is_writable {
        step("limit the files", file_limit::allow_one_more_layer(overlay.limits))?;
    }
    let copies = [step("copy the overlay", copy_overlay())?, step("copy it", copy_overlay())?];
    let real_path = renewal.is_at_real_path.then(|| real_path::in_rootfs(&overlay.real_path));
    let real_path = step("find the real path", real_path.transpose())?;
    step("go back to the worker", setns(worker, CloneFlags::CLONE_NEWNS))?;
    let paths = [real_path, Some(PathBuf::from(WORK))];
    for (copy, path) in copies.iter().zip(paths) {
        if let Some(path) = path {
            step("replace the overlay", replace(copy, &path))?;
        }
    }
    Ok(MountedOverlay { is_at_real_path: renewal.is_at_real_path, fds: Vec::new() })
}

fn receive_overlay(source: &OwnedFd) -> Result<(Overlay, OwnedFd), Errno> {
    let received = receive::<Overlay>(source.as_fd()).map_err(errno_of)?;
    let (overlay, mut mounts) = received.ok_or(Errno::ENOENT)?;
    Ok((overlay, mounts.pop().ok_or(Errno::ENOENT)?))
}

const WORK_TEXT: &CStr = c"/box/work";

/// Moves this process into a copy of the worker's mount namespace.
///
/// THREAT[FIL-9]: the layers are mounted in a namespace that no process of the guest is in.
fn make_stage() -> Result<(), Errno> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let options = Some("size=16k,nr_inodes=8,mode=700");
    mount(Some("stage"), STAGE, Some("tmpfs"), NO_RIGHTS, options)?;
    let make = |name| fs::create_dir(Path::new(STAGE).join(name)).map_err(errno_of);
    FOLDERS.into_iter().try_for_each(make)
}

/// THREAT[FIL-8]: a guest's writes in the user's directory have their own limits on bytes and
/// files.
fn make_layers(limits: LayerLimits) -> Result<OwnedFd, Errno> {
    let options = format!("size={},nr_inodes={},mode=700", limits.max_bytes, limits.max_files);
    mount(Some("layers"), LAYERS, Some("tmpfs"), NO_RIGHTS, Some(options.as_str()))?;
    File::open(LAYERS).map(OwnedFd::from).map_err(errno_of)
}

/// THREAT[FIL-3]: a socket or pipe of the lower layer is a different one in the overlay, which no
/// process of the host has opened.
fn mount_overlay(overlay: &Overlay, generation: u32, lower: &OwnedFd) -> Result<(), Errno> {
    sys::move_mount(lower.as_fd(), LOWER)?;
    let mut options = "lowerdir=/proc/lower,userxattr,index=off".to_owned();
    if overlay.is_writable {
        let (upper, work) = (layer_path("upper", generation), layer_path("work", generation));
        // The overlay's root has the mode of the upper layer's root.
        let mode = fs::metadata("/proc/lower").map_err(errno_of)?.mode() & 0o777;
        fs::set_permissions(&upper, Permissions::from_mode(mode)).map_err(errno_of)?;
        options = format!("{options},upperdir={upper},workdir={work}");
    } else {
        options = options.replace("/proc/lower", "/proc/lower:/proc/empty");
    }
    mount(Some("overlay"), MERGED, Some("overlay"), NO_RIGHTS, Some(options.as_str()))
}

/// Makes the folders of a layer. The folder of the layer after it is made now as well, because the
/// guest may leave no room for it.
fn make_layer_folders(generation: u32) -> Result<(), Errno> {
    let (upper, work) = (layer_path("upper", generation), layer_path("work", generation));
    let next = layer_path("upper", generation.saturating_add(1));
    [&upper, &work, &next, old_layers::FOLDER].into_iter().try_for_each(make_dir)
}

fn layer_path(kind: &str, generation: u32) -> String {
    format!("{LAYERS}/{kind}-{generation}")
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
    let target = sys::open_without_links(&real_path::to_cstring(path)?)?;
    sys::mount_beneath(copy.as_fd(), target.as_fd())?;
    drop(target);
    umount2(path, MntFlags::MNT_DETACH | MntFlags::UMOUNT_NOFOLLOW)
}

fn open_at(folder: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    openat(folder, name, OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())
}

const NO_RIGHTS: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);

fn step<T>(name: &str, result: Result<T, Errno>) -> Result<T, LayerError> {
    result.map_err(|errno| LayerError::new(Layer::Mount, name, errno as i32))
}

fn ignore(errno: Errno, ignored: Errno) -> Result<(), Errno> {
    if errno == ignored { Ok(()) } else { Err(errno) }
}
