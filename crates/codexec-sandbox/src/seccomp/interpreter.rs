use seccompiler::{BackendError, BpfProgram};

use super::{Rules, allow, equals, without_bits};

/// What an interpreter without files, processes and network needs: memory, time, randomness,
/// and the one socket that it already has.
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

pub(super) fn filters() -> Result<Vec<BpfProgram>, BackendError> {
    let mut rules: Rules = ALLOWED.iter().map(|&number| (number, Vec::new())).collect();
    // Memory may never become code.
    let no_exec = || without_bits(2, libc::PROT_EXEC.unsigned_abs().into());
    rules.insert(libc::SYS_mmap, vec![no_exec()?]);
    rules.insert(libc::SYS_mprotect, vec![no_exec()?]);
    // The one ioctl that the standard library needs: non-blocking mode.
    rules.insert(libc::SYS_ioctl, vec![equals(1, libc::FIONBIO)?]);
    Ok(vec![allow(rules)?])
}
