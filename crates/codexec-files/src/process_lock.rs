use std::{fs::File, io, path::Path};

use nix::{
    fcntl::{FcntlArg, fcntl},
    libc,
};

/// A lock on a file that belongs to this process and ends with it, however the process dies.
///
/// This is a POSIX record lock (`F_SETLK`). A [`FileLock`](crate::FileLock) would live on in a
/// forked child that has not called exec yet. In return, a process does not see its own record
/// locks, and loses them when it closes any descriptor of the file. So the holder must never open
/// the file again.
#[derive(Debug)]
pub struct ProcessLock {
    _file: File,
}

impl ProcessLock {
    /// Locks a file that is open for writing. Fails if another process holds the lock.
    pub fn acquire(file: File) -> io::Result<ProcessLock> {
        fcntl(&file, FcntlArg::F_SETLK(&exclusive_lock()))?;
        Ok(ProcessLock { _file: file })
    }

    /// Returns true if another process has locked the file, or in doubt. A missing file is not
    /// locked.
    pub fn is_held_elsewhere(path: &Path) -> bool {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => return error.kind() != io::ErrorKind::NotFound,
        };
        let mut lock = exclusive_lock();
        let queried = fcntl(&file, FcntlArg::F_GETLK(&mut lock));
        queried.is_err() || i32::from(lock.l_type) != libc::F_UNLCK
    }
}

fn exclusive_lock() -> libc::flock {
    let (l_type, l_whence) = (libc::F_WRLCK as libc::c_short, libc::SEEK_SET as libc::c_short);
    libc::flock { l_type, l_whence, l_start: 0, l_len: 0, l_pid: 0 }
}
