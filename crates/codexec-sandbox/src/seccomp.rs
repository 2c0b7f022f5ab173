use std::collections::BTreeMap;

use nix::errno::Errno;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

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

/// Everything else fails with EPERM; another architecture's calls kill the process.
///
/// THREAT[ESC-4]: no namespaces, mounts, ptrace, io_uring, bpf, keys, sockets, files, programs.
pub(crate) fn confine() -> Result<(), Errno> {
    let program = program().map_err(|_| Errno::EINVAL)?;
    apply_filter(&program).map_err(|_| Errno::last())
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|&number| (number, Vec::new())).collect();
    // Memory may never become code.
    let no_exec = || without_bits(2, libc::PROT_EXEC.unsigned_abs().into());
    rules.insert(libc::SYS_mmap, vec![no_exec()?]);
    rules.insert(libc::SYS_mprotect, vec![no_exec()?]);
    // The one ioctl that the standard library needs: non-blocking mode.
    rules.insert(libc::SYS_ioctl, vec![equals(1, libc::FIONBIO)?]);
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?.try_into()
}

fn without_bits(argument: u8, bits: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    let test = SeccompCmpOp::MaskedEq(bits);
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Qword, test, 0)?])
}

fn equals(argument: u8, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    // The kernel reads only the low half of an ioctl's number, and so do we.
    let (length, test) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
    SeccompRule::new(vec![SeccompCondition::new(argument, length, test, value)?])
}
