//! The system calls that have no safe wrapper in the crates we use.
#![expect(unsafe_code, reason = "raw system calls; each block says why it is sound")]

mod mounting;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, Signal};

use crate::WorkerExit;

pub(crate) use mounting::{
    clone_tree, mount_beneath, move_mount, new_tmpfs, open_without_links, set_attributes,
};

/// Takes ownership of a new descriptor from the kernel.
pub(crate) fn take_ownership(fd: RawFd) -> OwnedFd {
    // SAFETY: only called on descriptors fresh from recvmsg or clone3, without another owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

pub(crate) enum Cloned {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// Forks into new namespaces, and returns a pidfd to the parent.
///
/// Only for a single-threaded process: the child has only a copy of this thread, and locks that
/// another thread held would stay locked for ever.
pub(crate) fn clone_into(namespaces: libc::c_int) -> Result<Cloned, Errno> {
    let mut pidfd: RawFd = -1;
    // SAFETY: clone_args is plain data for which all-zero is valid.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = (namespaces | libc::CLONE_PIDFD) as u64;
    args.pidfd = std::ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: without CLONE_VM the child gets a copy of our memory, so it returns here on its own
    // stack; `args` outlives the call and has the given size.
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
        pid => Ok(Cloned::Parent {
            pid: i32::try_from(pid).unwrap_or(-1),
            pidfd: take_ownership(pidfd),
        }),
    }
}

/// Lets all threads of this process share two heaps. glibc gives each thread its own by default, and
/// under load every one of them keeps the most that its thread ever used.
pub fn share_heaps() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt changes a number in the allocator, under the allocator's own lock.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Raises the soft limit on open files to the hard limit: more than any guest has.
pub(crate) fn raise_open_files() -> Result<(), Errno> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live local.
    Errno::result(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the pointer is to a live local.
    Errno::result(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }).map(drop)
}

/// Lowers the soft and hard limit of this process. A limit that is already lower stays.
pub(crate) fn lower_limit(resource: u32, value: u64) -> Result<(), Errno> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live local.
    Errno::result(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    let lower = value.min(limit.rlim_max);
    let limit = libc::rlimit { rlim_cur: lower, rlim_max: lower };
    // SAFETY: the pointer is to a live local.
    Errno::result(unsafe { libc::setrlimit(resource, &raw const limit) }).map(drop)
}

/// Forbids a process to fork. Returns the old limit for [`set_process_limit`].
pub(crate) fn forbid_forks(pid: i32) -> Result<libc::rlimit, Errno> {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let (get, resource) = (std::ptr::null(), libc::RLIMIT_NPROC);
    // SAFETY: the pointer is to a live local.
    Errno::result(unsafe { libc::prlimit(pid, resource, get, &raw mut before) })?;
    set_process_limit(pid, libc::rlimit { rlim_cur: 0, ..before })?;
    Ok(before)
}

pub(crate) fn set_process_limit(pid: i32, limit: libc::rlimit) -> Result<(), Errno> {
    let (limit, ignored) = (&raw const limit, std::ptr::null_mut());
    // SAFETY: the pointer is to a live local.
    Errno::result(unsafe { libc::prlimit(pid, libc::RLIMIT_NPROC, limit, ignored) }).map(drop)
}

/// Sends a signal by number to a child that is not reaped yet.
pub(crate) fn send_signal(pid: i32, signal: libc::c_int) {
    // SAFETY: plain integers. Fails only if the child has ended.
    unsafe { libc::kill(pid, signal) };
}

/// Duplicates `fd` to this number, without close-on-exec.
pub(crate) fn dup_to(fd: OwnedFd, number: RawFd) -> Result<(), Errno> {
    if fd.as_raw_fd() == number {
        // SAFETY: plain integers, on a descriptor that we own.
        let result = unsafe { libc::fcntl(fd.into_raw_fd(), libc::F_SETFD, 0) };
        return Errno::result(result).map(drop);
    }
    // SAFETY: whatever had this number is of no use to the program that is about to start.
    Errno::result(unsafe { libc::dup2(fd.as_raw_fd(), number) }).map(drop)
}

pub(crate) fn default_signal(signal: Signal) -> Result<(), Errno> {
    // SAFETY: the default disposition runs no code of ours.
    unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) }.map(drop)
}

/// Waits for a child and reaps it. Returns its wait status.
pub(crate) fn reap_status(pid: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: the pointer is to a live local.
    let reaped = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    (reaped == pid).then_some(status)
}

/// Waits for a child and reaps it. Returns its exit status and resource usage.
pub(crate) fn reap(pid: i32) -> io::Result<WorkerExit> {
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
    Ok(WorkerExit {
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        peak_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
    })
}

pub(crate) fn kill(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    signal(pidfd, libc::SIGKILL)
}

pub(crate) fn signal(pidfd: BorrowedFd<'_>, signal: libc::c_int) -> io::Result<()> {
    let fd = pidfd.as_raw_fd();
    let no_info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: pidfd_send_signal reads nothing but its arguments when the info pointer is null.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, signal, no_info, 0) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns true if two processes share their memory; false also if the kernel does not say.
pub(crate) fn shares_memory(one: i32, other: i32) -> bool {
    const KCMP_VM: libc::c_int = 1;
    // SAFETY: plain integers.
    let result = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0, 0) };
    result == 0
}

/// Raises the scheduling priority of this thread: to the lowest real-time priority, which needs
/// root, or else to the shortest time slice, which the scheduler serves first.
pub(crate) fn raise_thread_priority() {
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    const RESET_ON_FORK: u64 = 1;
    const SLICE_NS: u64 = 100_000;
    let size = u32::try_from(size_of::<Attributes>()).unwrap_or(0);
    let set = |policy: libc::c_int, priority: u32, runtime_ns: u64| {
        let policy = policy.unsigned_abs();
        let attributes = Attributes {
            size,
            policy,
            flags: RESET_ON_FORK,
            priority,
            runtime_ns,
            ..Attributes::default()
        };
        // SAFETY: the attributes outlive the call and have the size in their first field; 0 is the
        // calling thread.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
    };
    let _ = set(libc::SCHED_RR, 1, 0) || set(libc::SCHED_OTHER, 0, SLICE_NS);
}

/// Closes all descriptors from 3 on, except for these.
pub(crate) fn close_all_but(kept: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let close = |first: u32, last: u32| {
        if first > last {
            return Ok(());
        }
        // SAFETY: the callers do not use any owner of these descriptors afterwards.
        let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        Errno::result(result).map(drop)
    };
    let mut kept: Vec<u32> = kept.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect();
    kept.sort_unstable();
    let mut next = 3;
    for fd in kept.into_iter().filter(|fd| *fd > 2) {
        close(next, fd - 1)?;
        next = fd + 1;
    }
    close(next, u32::MAX)
}

/// Forks. Returns the child's id to the parent, and `None` to the child. Only for a single-threaded
/// process.
pub(crate) fn fork() -> Result<Option<i32>, Errno> {
    // SAFETY: with one thread, no lock can be held by a thread that the child does not have.
    match unsafe { libc::fork() } {
        -1 => Err(Errno::last()),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Forks and returns only in the child. After `unshare(CLONE_NEWPID)` the child is the first
/// process of the namespace. The parent closes all descriptors and exits after the child.
pub(crate) fn continue_in_child() -> Result<(), Errno> {
    let Some(child) = fork()? else { return Ok(()) };
    let _ = close_all_but(&[]);
    let _ = reap_status(child);
    exit_now(0)
}

/// Waits until this process has no children.
pub(crate) fn wait_for_all() {
    // SAFETY: a null pointer asks for no status.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } != -1
        || Errno::last() == Errno::EINTR
    {}
}

/// Brings up the loopback interface of our own network namespace.
pub(crate) fn bring_up_loopback() -> Result<(), Errno> {
    // SAFETY: plain integers.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    let socket = Errno::result(socket).map(take_ownership)?;
    // SAFETY: ifreq is plain data for which all-zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (target, byte) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *target = libc::c_char::from_ne_bytes([*byte]);
    }
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
    // SAFETY: the request outlives the call and has the type that SIOCSIFFLAGS takes.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    Errno::result(result).map(drop)
}

pub(crate) fn landlock_restrict(rules: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: plain integers.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) };
    Errno::result(result).map(drop)
}

fn to_fd(result: libc::c_long) -> RawFd {
    RawFd::try_from(result).unwrap_or(-1)
}

/// Keeps these capabilities across the next `exec`, and drops all others for good. Their numbers
/// must be below 32.
pub(crate) fn keep_capabilities(kept: &[u32]) -> Result<(), Errno> {
    drop_bounding(kept)?;
    let bits = kept.iter().fold(0, |bits, capability| bits | (1 << capability));
    // Effective, permitted and inheritable; then the same for capabilities from 32 on.
    set_capabilities([bits, bits, bits, 0, 0, 0])?;
    for capability in kept {
        // SAFETY: prctl with plain integers.
        Errno::result(unsafe {
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, *capability, 0, 0)
        })?;
    }
    Ok(())
}

fn drop_bounding(kept: &[u32]) -> Result<(), Errno> {
    for capability in (0..=63).filter(|capability| !kept.contains(capability)) {
        // SAFETY: prctl with plain integers.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        match Errno::result(result) {
            Ok(_) => {}
            // Beyond the last capability of this kernel.
            Err(Errno::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Drops every capability for good: the process's sets, the ambient set and the bounding set.
pub(crate) fn drop_capabilities() -> Result<(), Errno> {
    drop_bounding(&[])?;
    // SAFETY: prctl with plain integers.
    Errno::result(unsafe {
        libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    })?;
    set_capabilities([0; 6])
}

fn set_capabilities(sets: [u32; 6]) -> Result<(), Errno> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    const VERSION_3: u32 = 0x2008_0522;
    let header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: the header and the two data elements of version 3 outlive the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) };
    Errno::result(result).map(drop)
}

pub(crate) fn time_since_boot() -> std::time::Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    let nanoseconds = u32::try_from(now.tv_nsec).unwrap_or(0);
    std::time::Duration::new(now.tv_sec.unsigned_abs(), nanoseconds)
}

pub(crate) fn open_process(pid: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: plain integers.
    let result = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    Errno::result(result).map(|fd| take_ownership(to_fd(fd)))
}

/// Exits without running exit handlers or destructors that a fork inherited from its parent.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and touches no memory of ours.
    unsafe { libc::_exit(code) }
}

/// Makes one system call by number, for the probe. Returns its error, or `None` on success.
pub(crate) fn attempt(number: libc::c_long, arguments: [libc::c_long; 4]) -> Option<Errno> {
    let [a, b, c, d] = arguments;
    // SAFETY: the probe passes only integers and null pointers, on which the kernel reports an
    // error instead of touching memory.
    let result = unsafe { libc::syscall(number, a, b, c, d) };
    (result == -1).then(Errno::last)
}

/// Returns true if any process has this file open for writing; false also if the file system does
/// not say.
pub(crate) fn is_open_for_writing(file: BorrowedFd<'_>) -> bool {
    /// Sets the signal for a broken lease.
    const F_SETSIG: libc::c_int = 10;
    let file = file.as_raw_fd();
    // If a process opens the file for writing while we hold the lease, the kernel signals us. The
    // default SIGIO would kill this process; SIGURG is ignored.
    // SAFETY: these calls read no memory of ours, and the descriptor is open.
    unsafe { libc::fcntl(file, F_SETSIG, libc::SIGURG) };
    // SAFETY: as above.
    let leased = unsafe { libc::fcntl(file, libc::F_SETLEASE, libc::F_RDLCK) };
    let is_refused = leased == -1 && Errno::last() == Errno::EAGAIN;
    // SAFETY: as above.
    unsafe { libc::fcntl(file, libc::F_SETLEASE, libc::F_UNLCK) };
    is_refused
}

/// A guard that gives this thread another user for file access, until it is dropped. New files
/// belong to that user, and permissions are checked for that user.
pub(crate) struct FileUser {
    before: (libc::uid_t, libc::gid_t),
}

impl FileUser {
    pub(crate) fn become_user(user: u32, group: u32) -> FileUser {
        // The group first: the new user may have no right to change it.
        // SAFETY: plain integers; both calls concern the calling thread alone and cannot fail in
        // a way that leaves it with more rights.
        let (group, user) = unsafe { (libc::setfsgid(group), libc::setfsuid(user)) };
        FileUser { before: (user.unsigned_abs(), group.unsigned_abs()) }
    }
}

impl Drop for FileUser {
    fn drop(&mut self) {
        let (user, group) = self.before;
        // SAFETY: as above.
        unsafe {
            libc::setfsuid(user);
            libc::setfsgid(group);
        }
    }
}
