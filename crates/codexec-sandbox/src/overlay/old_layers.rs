//! Deletes the layers that the host has committed, before the next one is mounted.

use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{OFlag, renameat};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};

/// The folder from which old layers are deleted. It exists from the start, because a guest may leave
/// no room for it.
pub(super) const FOLDER: &str = "/proc/layers/old";

const FLAGS: OFlag =
    OFlag::O_DIRECTORY.union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC).union(OFlag::O_RDONLY);

/// Deletes every layer except the upper layer of this generation, which the host has prepared. The
/// next call deletes what this one cannot.
///
/// THREAT[FIL-8]: the limits of bytes and files apply to what a session has not committed, and so at
/// most two layers exist at any time.
pub(super) fn delete(generation: u32) {
    // An open file of a process that was not stopped may keep a folder from being deleted.
    let _ = try_delete(generation);
}

fn try_delete(generation: u32) -> Result<(), Errno> {
    let mut layers = Dir::open(super::LAYERS, FLAGS, Mode::empty())?;
    let mut old = Dir::open(FOLDER, FLAGS, Mode::empty())?;
    let next = CString::new(format!("upper-{generation}")).map_err(|_| Errno::EINVAL)?;
    let kept = [next.as_c_str(), c"old"];
    let mut moved = MovedFolders { generation, count: 0 };
    for (name, _) in list(&mut layers)? {
        if !kept.contains(&name.as_c_str()) {
            moved.add(&layers, &name, &old)?;
        }
    }
    // Folders are moved here before they are emptied, so that neither a deep tree nor a long path
    // is ever opened.
    loop {
        let folders = list(&mut old)?;
        if folders.is_empty() {
            return Ok(());
        }
        for (folder, _) in folders {
            let mut opened = Dir::openat(&old, folder.as_c_str(), FLAGS, Mode::empty())?;
            for (name, kind) in list(&mut opened)? {
                match kind {
                    Some(Type::Directory) => moved.add(&opened, &name, &old)?,
                    Some(_) | None => {
                        unlinkat(&opened, name.as_c_str(), UnlinkatFlags::NoRemoveDir)?;
                    }
                }
            }
            unlinkat(&old, folder.as_c_str(), UnlinkatFlags::RemoveDir)?;
        }
    }
}

/// The names of the folders that wait to be deleted. An earlier generation may have left some.
struct MovedFolders {
    generation: u32,
    count: u64,
}

impl MovedFolders {
    fn add(&mut self, from: impl AsFd, name: &CStr, to: impl AsFd) -> Result<(), Errno> {
        self.count += 1;
        let new_name = format!("{}-{}", self.generation, self.count);
        renameat(from, name, to, new_name.as_str())
    }
}

fn list(folder: &mut Dir) -> Result<Vec<(CString, Option<Type>)>, Errno> {
    let mut found = Vec::new();
    for entry in folder.iter() {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            found.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    Ok(found)
}
