//! The user's directory at the path that it has on the host. The room is read-only and shared by
//! all workers, so the folders that lead there are made on a small file system of the worker's own,
//! which takes the place of the nearest folder that the room has.

use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

use crate::hull::errno_of;
use crate::mounter::READ_ONLY;
use crate::sys;
use crate::tree::{TEMPORARY, TOP};

/// Where a guest's own things are, and no directory of the user's.
const TAKEN: [&str; 4] = ["box", "proc", "dev", "sys"];

/// A folder with more than this in it is not made anew.
const MAX_ENTRIES: usize = 256;

/// A tree of mounts, complete and attached nowhere, and where it goes.
pub(super) struct Prepared {
    tree: OwnedFd,
    target: CString,
}

impl Prepared {
    /// All of it appears at once.
    pub(super) fn attach(self) -> Result<(), Errno> {
        sys::move_mount(self.tree.as_fd(), &self.target)
    }
}

/// Makes all that is needed to see the overlay at `real_path`, in the stage: where something
/// fails, the worker has lost nothing. `place` holds the folders.
pub(super) fn prepare(
    real_path: &Path,
    place: &OwnedFd,
    overlay: &CStr,
) -> Result<Prepared, Errno> {
    let path = inside(real_path)?;
    let folder = match first_folder_of_guest(&path) {
        Some(folder) => {
            // Made before the guest runs. A mount point cannot be renamed, and what is below it
            // is read-only, so the path stays what it is.
            fs::create_dir_all(&path).map_err(errno_of)?;
            folder
        }
        None => nearest_folder(&path)?,
    };
    let overlay = sys::clone_tree(sys::open_without_links(overlay)?.as_fd(), false)?;
    if folder == path {
        return Ok(Prepared { tree: overlay, target: as_text(&path)? });
    }
    remake(&folder, &path, place)?;
    fs::create_dir_all(&path).map_err(errno_of)?;
    sys::move_mount(overlay.as_fd(), &as_text(&path)?)?;
    sys::set_attributes(place.as_fd(), READ_ONLY, None, false)?;
    let target = as_text(&folder)?;
    let tree = sys::clone_tree(sys::open_without_links(&target)?.as_fd(), true)?;
    Ok(Prepared { tree, target })
}

/// Finds where a path of the host's is in a room, without links.
pub(super) fn inside(real_path: &Path) -> Result<PathBuf, Errno> {
    let mut names = real_path.components();
    if names.next() != Some(Component::RootDir) {
        return Err(Errno::EINVAL);
    }
    let Some(Component::Normal(first)) = names.clone().next() else { return Err(Errno::EINVAL) };
    let is_plain = names.all(|name| matches!(name, Component::Normal(_)));
    if !is_plain || TAKEN.iter().any(|taken| first == *taken) {
        return Err(Errno::EINVAL);
    }
    let top = Path::new(TOP).join(first);
    match fs::read_link(Path::new("/").join(first)) {
        Ok(target) if target == top => {
            Ok(Path::new(TOP).join(real_path.strip_prefix("/").unwrap_or(real_path)))
        }
        Ok(_) => Err(Errno::ELOOP),
        Err(_) => Ok(real_path.to_owned()),
    }
}

/// In a directory that the guest may write, returns the first folder of the path.
fn first_folder_of_guest(path: &Path) -> Option<PathBuf> {
    [TEMPORARY, TOP].into_iter().map(Path::new).find_map(|base| {
        let first = path.strip_prefix(base).ok()?.components().next()?;
        Some(base.join(first))
    })
}

/// Returns the last folder on the way to `path` that is there, but not the root.
fn nearest_folder(path: &Path) -> Result<PathBuf, Errno> {
    let is_folder = |path: &&Path| {
        let is_dir = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        is_dir && path.parent().is_some()
    };
    path.ancestors().skip(1).find(is_folder).map(Path::to_owned).ok_or(Errno::ENOENT)
}

/// Puts `place` over a folder, with everything in it that the folder has: an interpreter may live
/// there. Only `path` itself is left out.
fn remake(folder: &Path, path: &Path, place: &OwnedFd) -> Result<(), Errno> {
    enum Entry {
        Link(PathBuf),
        Mount { tree: OwnedFd, is_dir: bool },
    }
    let mut entries: Vec<(OsString, Entry)> = Vec::new();
    for found in fs::read_dir(folder).map_err(errno_of)? {
        let found = found.map_err(errno_of)?;
        let (at, kind) = (found.path(), found.file_type().map_err(errno_of)?);
        if at == path {
            continue;
        }
        if entries.len() >= MAX_ENTRIES {
            return Err(Errno::E2BIG);
        }
        let entry = if kind.is_symlink() {
            Entry::Link(fs::read_link(&at).map_err(errno_of)?)
        } else if kind.is_dir() || kind.is_file() {
            let tree = sys::clone_tree(sys::open_without_links(&as_text(&at)?)?.as_fd(), true)?;
            sys::set_attributes(tree.as_fd(), READ_ONLY, None, true)?;
            Entry::Mount { tree, is_dir: kind.is_dir() }
        } else {
            continue;
        };
        entries.push((found.file_name(), entry));
    }
    sys::move_mount(place.as_fd(), &as_text(folder)?)?;
    for (name, entry) in entries {
        let at = folder.join(name);
        match entry {
            Entry::Link(target) => symlink(target, at).map_err(errno_of)?,
            Entry::Mount { tree, is_dir } => {
                let made = if is_dir { fs::create_dir(&at) } else { fs::write(&at, "") };
                made.map_err(errno_of)?;
                sys::move_mount(tree.as_fd(), &as_text(&at)?)?;
            }
        }
    }
    Ok(())
}

pub(super) fn as_text(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)
}
