//! THREAT[ESC-4]: which system calls a guest can make: no namespaces, mounts, ptrace, io_uring,
//! bpf or keys for any of them. Everything that is not on a list fails with EPERM; another
//! architecture's calls kill the process.

mod entering;
mod fetching;
mod filter;
mod interpreter;
mod programs;
mod shared_memory;

use std::collections::BTreeMap;

use nix::errno::Errno;
use seccompiler::{BpfProgram, apply_filter, sock_filter};

/// Whose calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Calls {
    /// Our own engine's.
    Interpreter,
    Programs,
    /// Of programs that also talk to one listener.
    Fetching,
    /// Of a program that forks guests and makes them enter their workers.
    Entering,
}

/// What becomes of a call that is on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    /// Answered as if the kernel did not know it: libraries then do without.
    Unknown,
    /// Only if the low half of this argument passes the test. The kernel reads no more of any
    /// argument that is tested here.
    If {
        argument: u8,
        test: Test,
    },
    /// Only if one of these fits: each of these arguments is one of these values. Of these, too,
    /// the kernel reads no more than the low half.
    Fits(&'static [Form]),
}

type Form = &'static [(u8, &'static [u32])];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Test {
    Is(u32),
    IsNone(&'static [u32]),
    HasNoBit(u32),
}

fn allowed(calls: &[libc::c_long]) -> BTreeMap<u32, Verdict> {
    calls.iter().map(|call| (number(*call), Verdict::Allowed)).collect()
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// The filter for a guest; `None` on a machine whose calls we have no numbers for.
pub(crate) fn program(calls: Calls) -> Option<BpfProgram> {
    let list = match calls {
        Calls::Interpreter => interpreter::list(),
        Calls::Programs => programs::list(),
        Calls::Fetching => fetching::list(),
        Calls::Entering => entering::list(),
    };
    filter::compile(&list)
}

pub(crate) fn confine(calls: Calls) -> Result<(), Errno> {
    let program = program(calls).ok_or(Errno::ENOSYS)?;
    apply_filter(&program).map_err(|_| Errno::last())
}

/// Refuses anonymous memory that processes share, in this process and all below it.
pub(crate) fn refuse_shared_memory() -> Result<(), Errno> {
    let program = shared_memory::program().ok_or(Errno::ENOSYS)?;
    apply_filter(&program).map_err(|_| Errno::last())
}

/// The same as bytes, for a process that loads it by itself.
pub(crate) fn bytes(program: &BpfProgram) -> Vec<u8> {
    let instruction = |i: &sock_filter| {
        let [c1, c2] = i.code.to_ne_bytes();
        let [k1, k2, k3, k4] = i.k.to_ne_bytes();
        [c1, c2, i.jt, i.jf, k1, k2, k3, k4]
    };
    program.iter().flat_map(instruction).collect()
}
