use std::collections::BTreeMap;

use super::{ArgumentTest, SyscallVerdict, allow_all, number};

/// The calls of an interpreter without files, processes and network: memory, time, randomness, and
/// its one open socket.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sendto,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_write,
    libc::SYS_writev,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

pub(super) fn list() -> BTreeMap<u32, SyscallVerdict> {
    let mut list = allow_all(ALLOWED);
    // No executable memory.
    let no_exec = ArgumentTest::HasNoBit(libc::PROT_EXEC.unsigned_abs());
    // The only ioctl that the standard library needs: non-blocking mode.
    let non_blocking = ArgumentTest::Equals(u32::try_from(libc::FIONBIO).unwrap_or(0));
    for (call, argument, test) in [
        (libc::SYS_mmap, 2, no_exec),
        (libc::SYS_mprotect, 2, no_exec),
        (libc::SYS_ioctl, 1, non_blocking),
    ] {
        list.insert(number(call), SyscallVerdict::If { argument, test });
    }
    list
}
