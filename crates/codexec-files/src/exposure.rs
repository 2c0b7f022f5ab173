//! Detects files and folders that other users can write.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _};

use nix::unistd::geteuid;

/// How another user can change a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Owned by another user, with this uid.
    Foreign(u32),
    /// Writable by others, with this mode.
    Open(u32),
}

impl Exposure {
    /// Returns `None` if only the user and root can write it. A group whose gid equals the owner's
    /// uid counts as the owner's private group, which most systems create.
    pub fn of(about: &Metadata) -> Option<Exposure> {
        let (owner, mode) = (about.uid(), about.mode() & 0o777);
        if owner != geteuid().as_raw() {
            return Some(Exposure::Foreign(owner));
        }
        let is_own_group = about.gid() == owner;
        let is_open = mode & 0o002 != 0 || (mode & 0o020 != 0 && !is_own_group);
        is_open.then_some(Exposure::Open(mode))
    }
}
