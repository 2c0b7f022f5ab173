//! The system calls that have no safe wrapper in the crates we use.
#![expect(unsafe_code, reason = "raw system calls; each block says why it is sound")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use nix::errno::Errno;

use crate::Exit;

/// Takes ownership of a descriptor that the kernel has just handed to us.
pub(crate) fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: only called on descriptors fresh from recvmsg or clone3, owned by nobody else.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

pub(crate) enum Cloned {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// Like `fork`, into new namespaces, with a pidfd for the parent.
///
/// Only for a single-threaded process: the child has a copy of this thread alone, and locks
/// that another thread held would stay locked for ever.
pub(crate) fn clone_into(namespaces: libc::c_int) -> Result<Cloned, Errno> {
    let mut pidfd: RawFd = -1;
    // SAFETY: clone_args is plain data for which all-zero is valid.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = (namespaces | libc::CLONE_PIDFD) as u64;
    args.pidfd = std::ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: without CLONE_VM the child gets a copy of our memory, so it returns here on a
    // stack of its own; `args` outlives the call and has the size that we say.
    let result = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            std::ptr::from_mut(&mut args),
            size_of::<libc::clone_args>(),
        )
    };
    match result {
        -1 => Err(Errno::last()),
        0 => Ok(Cloned::Child),
        pid => Ok(Cloned::Parent { pid: i32::try_from(pid).unwrap_or(-1), pidfd: own(pidfd) }),
    }
}

/// Reaps a child that has ended, with what it used.
pub(crate) fn reap(pid: i32) -> io::Result<Exit> {
    let mut status = 0;
    // SAFETY: rusage is plain data for which all-zero is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals of the right type.
    while unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } == -1 {
        if Errno::last() != Errno::EINTR {
            return Err(io::Error::last_os_error());
        }
    }
    let micros =
        |time: libc::timeval| time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_usec.unsigned_abs();
    Ok(Exit {
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        peak_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
    })
}

pub(crate) fn kill(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    let fd = pidfd.as_raw_fd();
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: pidfd_send_signal reads nothing but its arguments when the info pointer is null.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, libc::SIGKILL, no_info, 0) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Closes every descriptor from 3 on, except one.
pub(crate) fn close_all_but(kept: BorrowedFd<'_>) -> Result<(), Errno> {
    let kept = kept.as_raw_fd().unsigned_abs();
    let close = |first: u32, last: u32| {
        if first > last {
            return Ok(());
        }
        // SAFETY: the callers are about to lose or forget every owner of these descriptors.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        Errno::result(result).map(drop)
    };
    close(3, kept.saturating_sub(1))?;
    close(kept.max(2) + 1, u32::MAX)
}

/// Gives up every capability, for good: the sets, the ambient set and the bounding set.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    for capability in 0..=63 {
        // SAFETY: prctl with plain integers.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        match Errno::result(result) {
            Ok(_) => {}
            // Beyond the last capability that this kernel knows.
            Err(Errno::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    // SAFETY: prctl with plain integers.
    Errno::result(unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    })?;
    let header = Header { version: VERSION_3, pid: 0 };
    let nothing = [0_u32; 6];
    // SAFETY: the header and the two data elements of version 3 live through the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, nothing.as_ptr()) };
    Errno::result(result).map(drop)
}

/// Ends the process without running anything that the parent left behind in its memory.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// Makes one system call by number, for the probe. Returns its error, or `None` if it worked.
pub(crate) fn attempt(number: libc::c_long, arguments: [libc::c_long; 4]) -> Option<Errno> {
    let [a, b, c, d] = arguments;
    // SAFETY: the probe passes only integers and null pointers, on which the kernel reports an
    // error instead of touching memory.
    let result = unsafe { libc::syscall(number, a, b, c, d) };
    (result == -1).then(Errno::last)
}
