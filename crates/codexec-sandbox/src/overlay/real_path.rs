//! Mounts the user's directory at its path on the host. The rootfs is read-only and shared by all
//! workers, so the missing parent folders are made on a small tmpfs of the worker, which covers the
//! nearest folder that the rootfs has.

use std::ffi::{CStr, CString, OsString};
use std::fs;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;

use crate::mounter::READ_ONLY;
use crate::rootfs::{TEMPORARY, TOP};
use crate::shared_layers::errno_of;
use crate::sys;

/// Top-level folders of the guest, where no directory of the user can be mounted.
const RESERVED: [&str; 4] = ["box", "proc", "dev", "sys"];

/// A folder with more entries than this is not covered.
const MAX_ENTRIES: usize = 256;

/// A complete, detached tree of mounts, and its target.
pub(super) struct PreparedMount {
    tree: OwnedFd,
    target: CString,
}

impl PreparedMount {
    /// Attaches the whole tree in one step.
    pub(super) fn attach(self) -> Result<(), Errno> {
        sys::move_mount(self.tree.as_fd(), &self.target)
    }
}

/// Prepares the overlay's mount at `real_path` in the stage, so that a failure does not affect the
/// worker. `parents` is the tmpfs for the parent folders.
pub(super) fn prepare(
    real_path: &Path,
    parents: &OwnedFd,
    overlay: &CStr,
) -> Result<PreparedMount, Errno> {
    let path = in_rootfs(real_path)?;
    let folder = match first_folder_of_guest(&path) {
        Some(folder) => {
            // These folders are made before the guest runs. A mount point cannot be renamed and
            // its content is read-only, so the guest cannot change the path.
            fs::create_dir_all(&path).map_err(errno_of)?;
            folder
        }
        None => nearest_folder(&path)?,
    };
    let overlay = sys::clone_tree(sys::open_without_links(overlay)?.as_fd(), false)?;
    if folder == path {
        return Ok(PreparedMount { tree: overlay, target: to_cstring(&path)? });
    }
    cover(&folder, &path, parents)?;
    fs::create_dir_all(&path).map_err(errno_of)?;
    sys::move_mount(overlay.as_fd(), &to_cstring(&path)?)?;
    sys::set_attributes(parents.as_fd(), READ_ONLY, None, false)?;
    let target = to_cstring(&folder)?;
    let tree = sys::clone_tree(sys::open_without_links(&target)?.as_fd(), true)?;
    Ok(PreparedMount { tree, target })
}

/// Translates a path of the host to a path without symlinks in the rootfs.
pub(super) fn in_rootfs(real_path: &Path) -> Result<PathBuf, Errno> {
    let mut names = real_path.components();
    if names.next() != Some(Component::RootDir) {
        return Err(Errno::EINVAL);
    }
    let Some(Component::Normal(first)) = names.clone().next() else { return Err(Errno::EINVAL) };
    let is_normal = names.all(|name| matches!(name, Component::Normal(_)));
    if !is_normal || RESERVED.iter().any(|reserved| first == *reserved) {
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

/// Returns the first folder of the path below a directory that the guest may write.
fn first_folder_of_guest(path: &Path) -> Option<PathBuf> {
    [TEMPORARY, TOP].into_iter().map(Path::new).find_map(|base| {
        let first = path.strip_prefix(base).ok()?.components().next()?;
        Some(base.join(first))
    })
}

/// Returns the deepest existing parent folder of `path`, except for the root.
fn nearest_folder(path: &Path) -> Result<PathBuf, Errno> {
    let is_folder = |path: &&Path| {
        let is_dir = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        is_dir && path.parent().is_some()
    };
    path.ancestors().skip(1).find(is_folder).map(Path::to_owned).ok_or(Errno::ENOENT)
}

/// Mounts `parents` over a folder and bind-mounts the folder's entries into it, except for `path`:
/// one of them may be an interpreter.
fn cover(folder: &Path, path: &Path, parents: &OwnedFd) -> Result<(), Errno> {
    enum Entry {
        Link(PathBuf),
        Mount { tree: OwnedFd, is_dir: bool },
    }
    let mut entries: Vec<(OsString, Entry)> = Vec::new();
    for dir_entry in fs::read_dir(folder).map_err(errno_of)? {
        let dir_entry = dir_entry.map_err(errno_of)?;
        let (at, kind) = (dir_entry.path(), dir_entry.file_type().map_err(errno_of)?);
        if at == path {
            continue;
        }
        if entries.len() >= MAX_ENTRIES {
            return Err(Errno::E2BIG);
        }
        let entry = if kind.is_symlink() {
            Entry::Link(fs::read_link(&at).map_err(errno_of)?)
        } else if kind.is_dir() || kind.is_file() {
            let tree = sys::clone_tree(sys::open_without_links(&to_cstring(&at)?)?.as_fd(), true)?;
            sys::set_attributes(tree.as_fd(), READ_ONLY, None, true)?;
            Entry::Mount { tree, is_dir: kind.is_dir() }
        } else {
            continue;
        };
        entries.push((dir_entry.file_name(), entry));
    }
    sys::move_mount(parents.as_fd(), &to_cstring(folder)?)?;
    for (name, entry) in entries {
        let at = folder.join(name);
        match entry {
            Entry::Link(target) => symlink(target, at).map_err(errno_of)?,
            Entry::Mount { tree, is_dir } => {
                let made = if is_dir { fs::create_dir(&at) } else { fs::write(&at, "") };
                made.map_err(errno_of)?;
                sys::move_mount(tree.as_fd(), &to_cstring(&at)?)?;
            }
        }
    }
    Ok(())
}

pub(super) fn to_cstring(path: &Path) -> Result<CString, Errno> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::EINVAL)
}
