//! Builds the rootfs of programs: a small tmpfs with read-only bind mounts of the host's
//! directories.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};

use crate::Rootfs;
use crate::shared_layers::errno_of;

/// The mount point of a worker's own tmpfs.
pub(crate) const BOX: &str = "/box";
/// A bind mount of a folder in that tmpfs.
pub(crate) const TEMPORARY: &str = "/tmp";
/// The working directory of a guest.
pub(crate) const WORK: &str = "/box/work";
/// The user's top-level directories, such as `/data`, are mounted here, and the rootfs has a
/// symlink to it. Landlock checks the folder that contains a mount, and writing to the root must
/// stay forbidden.
pub(crate) const TOP: &str = "/box/top";

const NOTHING: Option<&str> = None;
/// The directory in which the rootfs is built. The rootfs needs nothing from there, and the host
/// does not see the mount.
const BUILD: &str = "/sys";
/// The directories on which workers mount something.
const MOUNT_POINTS: &[&str] = &["box", "tmp", "proc"];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];
const LINKS: &[(&str, &str)] = &[
    ("var/tmp", "/tmp"),
    ("dev/shm", "/tmp"),
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
];

/// Builds the rootfs and makes it this process's root. Needs an unshared mount namespace and the
/// right to mount.
pub(crate) fn enter(rootfs: &Rootfs) -> Result<(), Errno> {
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("rootfs"), BUILD, Some("tmpfs"), flags, Some("size=4m,nr_inodes=4k,mode=755"))?;
    for name in MOUNT_POINTS {
        make_dir(&Path::new(BUILD).join(name))?;
    }
    for path in &rootfs.shown {
        bind_same_path(path)?;
    }
    for (source, target) in &rootfs.placed {
        bind(source, &in_build(target), true)?;
    }
    for (path, text) in &rootfs.written {
        let at = in_build(path);
        make_parent(&at)?;
        fs::write(&at, text).map_err(errno_of)?;
    }
    for name in DEVICES {
        bind(&Path::new("/dev").join(name), &Path::new(BUILD).join("dev").join(name), false)?;
    }
    for (name, target) in LINKS {
        let at = Path::new(BUILD).join(name);
        make_parent(&at)?;
        symlink(target, at).map_err(errno_of)?;
    }
    for path in &rootfs.work_dirs {
        make_first_folder(path)?;
    }
    // The kernel lets a user namespace mount /proc only if a /proc is already visible. Each worker
    // covers this one.
    let proc = Path::new(BUILD).join("proc");
    mount(Some("/proc"), &proc, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?;
    pivot()
}

fn pivot() -> Result<(), Errno> {
    chdir(BUILD)?;
    // The old root is stacked on the new one, and then unmounted.
    pivot_root(".", ".")?;
    umount2(".", MntFlags::MNT_DETACH)?;
    chdir("/")?;
    let read_only = MsFlags::MS_REMOUNT
        | MsFlags::MS_BIND
        | MsFlags::MS_RDONLY
        | MsFlags::MS_NOSUID
        | MsFlags::MS_NODEV;
    mount(NOTHING, "/", NOTHING, read_only, NOTHING)
}

/// Covers `/proc` by that of our own PID namespace, or by an empty directory if the kernel refuses
/// to mount it.
pub(crate) fn mount_proc(options: &str) -> Result<(), Errno> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, Some(options)).or_else(|_| {
        let options = Some("size=0,nr_inodes=1,mode=555");
        mount(Some("none"), "/proc", Some("tmpfs"), flags | MsFlags::MS_RDONLY, options)
    })
}

/// Bind-mounts a path of the host at the same path; a symlink is copied.
fn bind_same_path(path: &Path) -> Result<(), Errno> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    let at = in_build(path);
    if fs::symlink_metadata(&at).is_ok() {
        return Ok(());
    }
    if metadata.is_symlink() {
        make_parent(&at)?;
        return symlink(fs::read_link(path).map_err(errno_of)?, at).map_err(errno_of);
    }
    bind(path, &at, true)
}

fn bind(source: &Path, at: &Path, is_read_only: bool) -> Result<(), Errno> {
    let Ok(metadata) = fs::metadata(source) else { return Ok(()) };
    if metadata.is_dir() {
        make_dir(at)?;
    } else {
        make_parent(at)?;
        fs::write(at, "").map_err(errno_of)?;
    }
    mount(Some(source), at, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?;
    if !is_read_only {
        return Ok(());
    }
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID;
    // Flags of a locked mount cannot be cleared, so a remount must repeat them.
    let stricter = flags | MsFlags::MS_NODEV;
    mount(NOTHING, at, NOTHING, stricter, NOTHING)
        .or_else(|_| mount(NOTHING, at, NOTHING, stricter | MsFlags::MS_NOEXEC, NOTHING))
        .or_else(|_| mount(NOTHING, at, NOTHING, flags, NOTHING))
}

/// Makes the first folder of a path, unless the rootfs has it. Deeper names of the host stay
/// hidden.
fn make_first_folder(path: &Path) -> Result<(), Errno> {
    let mut names = path.components().skip(1);
    let Some(first) = names.next() else { return Ok(()) };
    let at = Path::new(BUILD).join(first);
    if fs::symlink_metadata(&at).is_ok() {
        return Ok(());
    }
    match names.next() {
        Some(_) => make_dir(&at),
        None => symlink(Path::new(TOP).join(first), at).map_err(errno_of),
    }
}

fn in_build(path: &Path) -> PathBuf {
    Path::new(BUILD).join(path.strip_prefix("/").unwrap_or(path))
}

fn make_parent(path: &Path) -> Result<(), Errno> {
    path.parent().map_or(Ok(()), make_dir)
}

fn make_dir(path: &Path) -> Result<(), Errno> {
    fs::create_dir_all(path).map_err(errno_of)
}
