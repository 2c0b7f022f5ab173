//! Copies file trees out of an installer's sandbox and merges them with the installed ones. Any
//! file that an installer leaves may have been written by code of a package.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

/// Limits of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeLimits {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

const MAX_DEPTH: usize = 64;

/// The size of a tree, and the number of entries that were not copied.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CopiedTree {
    pub(super) bytes: u64,
    pub(super) files: u64,
    /// Links that lead outside, devices, sockets, pipes.
    pub(super) left_out: u64,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum TreeError {
    #[error("more files or bytes than allowed")]
    TooBig,
    #[error("{0} is denied")]
    Denied(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The way in which files get to the new tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyMode {
    Copy,
    /// Hard links to the old files.
    Link,
}

/// Copies a tree out of the sandbox.
///
/// THREAT[PKG-5]: copies only files, folders and links that stay inside; the file modes are ours.
pub(super) fn copy_out(
    from: &Path,
    to: &Path,
    bounds: TreeLimits,
) -> Result<CopiedTree, TreeError> {
    make_dir(to)?;
    let mut copied = CopiedTree::default();
    copy_tree(from, to, CopyMode::Copy, bounds, &BTreeSet::new(), &mut copied)?;
    Ok(copied)
}

/// Adds the entries of `from` that `to` does not have, except those in `without`.
pub(super) fn merge(
    from: &Path,
    to: &Path,
    without: &BTreeSet<PathBuf>,
    bounds: TreeLimits,
    copied: &mut CopiedTree,
) -> Result<(), TreeError> {
    copy_tree(from, to, CopyMode::Link, bounds, without, copied)
}

/// Removes the empty directories below this one.
pub(super) fn remove_empty_dirs(root: &Path) -> io::Result<()> {
    let mut folders = vec![root.to_owned()];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    for folder in folders.iter().skip(1).rev() {
        // Fails if the directory is not empty.
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

fn copy_tree(
    from: &Path,
    to: &Path,
    how: CopyMode,
    bounds: TreeLimits,
    without: &BTreeSet<PathBuf>,
    copied: &mut CopiedTree,
) -> Result<(), TreeError> {
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(from.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let target = to.join(&path);
            if without.contains(&path)
                || (how == CopyMode::Link && exists_in_target(&entry, &target)?)
            {
                continue;
            }
            let found = entry.metadata()?;
            copied.files += 1;
            copied.bytes += if found.is_file() { found.len() } else { 0 };
            let depth = path.components().count();
            if copied.files > bounds.files || copied.bytes > bounds.bytes || depth > MAX_DEPTH {
                return Err(TreeError::TooBig);
            }
            if found.is_dir() {
                make_dir(&target)?;
                folders.push(path);
            } else if found.is_file() {
                match how {
                    CopyMode::Copy => copy(&entry.path(), &target, found.len())?,
                    CopyMode::Link => fs::hard_link(entry.path(), &target)?,
                }
            } else if found.is_symlink() {
                let leads_to = fs::read_link(entry.path())?;
                if stays_inside(&leads_to, depth - 1) {
                    symlink(leads_to, &target)?;
                } else {
                    copied.left_out += 1;
                }
            } else {
                copied.left_out += 1;
            }
        }
    }
    Ok(())
}

/// Creates a directory that guests can read, whatever our umask is.
pub(super) fn make_dir(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(0o755)),
    }
}

/// True if the new tree has this entry already. Folders of the same name are merged.
fn exists_in_target(entry: &fs::DirEntry, target: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(target) {
        Ok(there) => Ok(!(there.is_dir() && entry.file_type()?.is_dir())),
        Err(_) => Ok(false),
    }
}

#[expect(clippy::disallowed_methods, reason = "guests read the file, so it is not private")]
fn copy(from: &Path, to: &Path, bytes: u64) -> io::Result<()> {
    // A regular file when it was listed, and no process is left that could change that.
    let source = File::open(from)?;
    let found = source.metadata()?;
    let mut target = File::options().write(true).create_new(true).mode(0o644).open(to)?;
    io::copy(&mut io::Read::take(&source, bytes), &mut target)?;
    // Compiled modules refer to the timestamp of their source.
    target.set_times(FileTimes::new().set_modified(found.modified()?))?;
    let is_program = found.permissions().mode() & 0o111 != 0;
    target.set_permissions(fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))
}

/// True if a link at this depth stays in its own tree. `..` is allowed only at its start and not
/// above the root; then the link cannot leave, whatever other such links are on its path.
fn stays_inside(link: &Path, depth: usize) -> bool {
    let mut up = 0;
    let mut has_gone_down = false;
    for component in link.components() {
        match component {
            Component::ParentDir if has_gone_down => return false,
            Component::ParentDir => up += 1,
            Component::Normal(_) => has_gone_down = true,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    up <= depth
}

#[cfg(test)]
mod tests;
