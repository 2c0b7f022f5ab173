//! THREAT[ESC-4]: which system calls a guest can make: no namespaces, mounts, ptrace, io_uring,
//! bpf or keys for any of them. Everything that is not on a list fails with EPERM; another
//! architecture's calls kill the process.

mod interpreter;
mod programs;

use nix::errno::Errno;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter,
};

type Rules = std::collections::BTreeMap<i64, Vec<SeccompRule>>;

/// The filters for a guest, in the order in which they are loaded.
pub(crate) fn filters(has_room: bool) -> Result<Vec<BpfProgram>, Errno> {
    let filters = if has_room { programs::filters() } else { interpreter::filters() };
    filters.map_err(|_| Errno::EINVAL)
}

pub(crate) fn confine(has_room: bool) -> Result<(), Errno> {
    for filter in filters(has_room)? {
        apply_filter(&filter).map_err(|_| Errno::last())?;
    }
    Ok(())
}

/// The same as bytes, for a process that loads them by itself.
pub(crate) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let instruction = |i: &seccompiler::sock_filter| {
        let [c1, c2] = i.code.to_ne_bytes();
        let [k1, k2, k3, k4] = i.k.to_ne_bytes();
        [c1, c2, i.jt, i.jf, k1, k2, k3, k4]
    };
    program.iter().flat_map(instruction).collect()
}

/// Only these calls, under these conditions; a call without conditions is allowed as it is.
fn allow(rules: Rules) -> Result<BpfProgram, BackendError> {
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?.try_into()
}

/// These calls are answered as if the kernel did not know them.
fn unknown(calls: &[libc::c_long]) -> Result<BpfProgram, BackendError> {
    let rules: Rules = calls.iter().map(|&number| (number, Vec::new())).collect();
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let arch = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, unknown, arch)?.try_into()
}

fn without_bits(argument: u8, bits: u64) -> Result<SeccompRule, BackendError> {
    let test = SeccompCmpOp::MaskedEq(bits);
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Qword, test, 0)?])
}

fn equals(argument: u8, value: u64) -> Result<SeccompRule, BackendError> {
    // The kernel reads only the low half of these arguments, and so do we.
    let (length, test) = (SeccompCmpArgLen::Dword, SeccompCmpOp::Eq);
    SeccompRule::new(vec![SeccompCondition::new(argument, length, test, value)?])
}

fn differs(argument: u8, values: &[u64]) -> Result<SeccompRule, BackendError> {
    let condition = |value: &u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *value)
    };
    SeccompRule::new(values.iter().map(condition).collect::<Result<_, _>>()?)
}
