//! Who else can write a file or folder that decides something.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _};

use nix::unistd::geteuid;

/// How somebody else can change a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// It belongs to the user of this number.
    Foreign(u32),
    /// Its mode lets others write.
    Open(u32),
}

impl Exposure {
    /// `None`: only the user, and root, can write it. A group of the same number as its owner is
    /// the owner's alone, as most systems make them.
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
