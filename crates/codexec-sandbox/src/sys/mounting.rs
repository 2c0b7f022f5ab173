//! The system calls for mounts that have no safe wrapper in the crates we use.

use std::ffi::CStr;
use std::os::fd::{AsFd as _, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;

use super::{take_ownership, to_fd};

/// Makes a detached copy of the mount at `path`, with the mounts below it if `is_recursive`.
pub(crate) fn clone_tree(path: BorrowedFd<'_>, is_recursive: bool) -> Result<OwnedFd, Errno> {
    const CLONE: libc::c_int = 1;
    let recursive = if is_recursive { libc::AT_RECURSIVE } else { 0 };
    let flags = CLONE | libc::O_CLOEXEC | libc::AT_EMPTY_PATH | recursive;
    // SAFETY: an empty path and plain integers.
    let result =
        unsafe { libc::syscall(libc::SYS_open_tree, path.as_raw_fd(), c"".as_ptr(), flags) };
    Errno::result(result).map(|fd| take_ownership(to_fd(fd)))
}

/// Attaches a detached mount at `target`, which must not contain symlinks.
pub(crate) fn move_mount(tree: BorrowedFd<'_>, target: &CStr) -> Result<(), Errno> {
    let target = open_without_links(target)?;
    attach(tree, target.as_fd(), 0)
}

/// Attaches a detached mount beneath the mount with the root `target`. Unmounting that one exposes
/// the new mount, without a moment in between.
pub(crate) fn mount_beneath(tree: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Result<(), Errno> {
    const BENEATH: libc::c_int = 0x200;
    attach(tree, target, BENEATH)
}

fn attach(tree: BorrowedFd<'_>, target: BorrowedFd<'_>, flags: libc::c_int) -> Result<(), Errno> {
    const FROM_EMPTY_PATH: libc::c_int = 0x4;
    const TO_EMPTY_PATH: libc::c_int = 0x40;
    // SAFETY: two empty strings and plain integers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            target.as_raw_fd(),
            c"".as_ptr(),
            FROM_EMPTY_PATH | TO_EMPTY_PATH | flags,
        )
    };
    Errno::result(result).map(drop)
}

/// Sets attributes of a mount, and of the mounts below it if `is_recursive`. The user namespace
/// `users` maps the owners of its files.
pub(crate) fn set_attributes(
    tree: BorrowedFd<'_>,
    set: u64,
    users: Option<BorrowedFd<'_>>,
    is_recursive: bool,
) -> Result<(), Errno> {
    #[repr(C)]
    struct Attributes {
        set: u64,
        clear: u64,
        propagation: u64,
        users: u64,
    }
    const MAPPED: u64 = 0x10_0000;
    let attributes = Attributes {
        set: set | if users.is_some() { MAPPED } else { 0 },
        clear: 0,
        propagation: 0,
        users: users.map_or(0, |fd| u64::from(fd.as_raw_fd().unsigned_abs())),
    };
    let flags = libc::AT_EMPTY_PATH | if is_recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the attributes outlive the call and have the given size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    Errno::result(result).map(drop)
}

/// Makes a detached tmpfs with these options and mount attributes.
pub(crate) fn new_tmpfs(options: &[(&CStr, &CStr)], attributes: u64) -> Result<OwnedFd, Errno> {
    const CLOSE_ON_EXEC: libc::c_int = 1;
    const SET_STRING: libc::c_int = 1;
    const CREATE: libc::c_int = 6;
    // SAFETY: a string that outlives the call, and a plain integer.
    let context = unsafe { libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), CLOSE_ON_EXEC) };
    let context = Errno::result(context).map(|fd| take_ownership(to_fd(fd)))?;
    let raw = context.as_raw_fd();
    for (name, value) in options {
        // SAFETY: two strings that outlive the call, and plain integers.
        let set = unsafe {
            libc::syscall(libc::SYS_fsconfig, raw, SET_STRING, name.as_ptr(), value.as_ptr(), 0)
        };
        Errno::result(set)?;
    }
    let nothing = std::ptr::null::<libc::c_char>();
    // SAFETY: null pointers and plain integers, as this command takes them.
    let made = unsafe { libc::syscall(libc::SYS_fsconfig, raw, CREATE, nothing, nothing, 0) };
    Errno::result(made)?;
    // SAFETY: plain integers.
    let tree = unsafe { libc::syscall(libc::SYS_fsmount, raw, CLOSE_ON_EXEC, attributes) };
    Errno::result(tree).map(|fd| take_ownership(to_fd(fd)))
}

/// Opens `path`. Fails if any component of it is a symlink.
pub(crate) fn open_without_links(path: &CStr) -> Result<OwnedFd, Errno> {
    // SAFETY: open_how is plain data for which all-zero is valid.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::from((libc::O_PATH | libc::O_CLOEXEC).unsigned_abs());
    how.resolve = libc::RESOLVE_NO_SYMLINKS | libc::RESOLVE_NO_MAGICLINKS;
    // SAFETY: the string and `how` outlive the call, and `how` has the given size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    Errno::result(result).map(|fd| take_ownership(to_fd(fd)))
}
