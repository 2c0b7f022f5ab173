//! The file tree of a room: a small root of our own, with directories of the host's in it,
//! read-only.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::unistd::{chdir, pivot_root};

use crate::Room;
use crate::hull::errno_of;

/// Where a worker mounts its own bounded file system.
pub(crate) const BOX: &str = "/box";
/// A part of it is also here.
pub(crate) const TEMPORARY: &str = "/tmp";
/// The directory that a guest starts in.
pub(crate) const WORK: &str = "/box/work";
/// Directories of the user's that stand at the top of the host's file tree are shown here; the
/// room has a link to it. Landlock asks the folder that a mount stands in, and of the root it must
/// not allow writing.
pub(crate) const TOP: &str = "/box/top";

const NOTHING: Option<&str> = None;
/// While it is built, the new root stands here, where nothing is that a room could show; on the
/// host's own tree nothing changes.
const BUILD: &str = "/sys";
/// What a worker mounts something on.
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

/// Replaces the root by the room's. Needs a mount namespace of its own, and the right to mount.
pub(crate) fn enter(room: &Room) -> Result<(), Errno> {
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("room"), BUILD, Some("tmpfs"), flags, Some("size=4m,nr_inodes=4k,mode=755"))?;
    for name in MOUNT_POINTS {
        make_dir(&Path::new(BUILD).join(name))?;
    }
    for path in &room.shown {
        show(path)?;
    }
    for (source, target) in &room.placed {
        bind(source, &below(target), true)?;
    }
    for (path, text) in &room.written {
        let at = below(path);
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
    for path in &room.work_dirs {
        make_first_folder(path)?;
    }
    // Nobody may mount a view of processes who has not one already. Each worker covers it.
    let proc = Path::new(BUILD).join("proc");
    mount(Some("/proc"), &proc, NOTHING, MsFlags::MS_BIND | MsFlags::MS_REC, NOTHING)?;
    pivot()
}

fn pivot() -> Result<(), Errno> {
    chdir(BUILD)?;
    // The old root goes below the new one, and is taken away from there.
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

/// The same path inside as outside; links stay links.
fn show(path: &Path) -> Result<(), Errno> {
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    let at = below(path);
    if fs::symlink_metadata(&at).is_ok() {
        return Ok(());
    }
    if found.is_symlink() {
        make_parent(&at)?;
        return symlink(fs::read_link(path).map_err(errno_of)?, at).map_err(errno_of);
    }
    bind(path, &at, true)
}

fn bind(source: &Path, at: &Path, is_read_only: bool) -> Result<(), Errno> {
    let Ok(found) = fs::metadata(source) else { return Ok(()) };
    if found.is_dir() {
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
    // A mount that is locked with more flags than these keeps them only if they are asked for.
    let stricter = flags | MsFlags::MS_NODEV;
    mount(NOTHING, at, NOTHING, stricter, NOTHING)
        .or_else(|_| mount(NOTHING, at, NOTHING, stricter | MsFlags::MS_NOEXEC, NOTHING))
        .or_else(|_| mount(NOTHING, at, NOTHING, flags, NOTHING))
}

/// Makes the first folder of a path, unless the room has something there: nothing else of the
/// host's names is told.
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

fn below(path: &Path) -> PathBuf {
    Path::new(BUILD).join(path.strip_prefix("/").unwrap_or(path))
}

fn make_parent(path: &Path) -> Result<(), Errno> {
    path.parent().map_or(Ok(()), make_dir)
}

fn make_dir(path: &Path) -> Result<(), Errno> {
    fs::create_dir_all(path).map_err(errno_of)
}
