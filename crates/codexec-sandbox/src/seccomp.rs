//! THREAT[ESC-4]: the system calls that a guest can make. No guest can use namespaces, mounts,
//! ptrace, io_uring, bpf or keys. A call that is not on its list fails with EPERM; a call of
//! another architecture kills the process.

mod entering;
mod fetching;
mod filter;
mod interpreter;
mod programs;
mod shared_memory;

use std::collections::BTreeMap;

use nix::errno::Errno;
use seccompiler::{BpfProgram, apply_filter, sock_filter};

/// The kind of process that a filter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The engine in our own binary.
    Interpreter,
    Programs,
    /// Programs that also connect to one listener.
    Fetching,
    /// A program that forks guests and makes them enter their workers.
    Entering,
}

/// The verdict on a system call that is on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyscallVerdict {
    Allowed,
    /// Fails with ENOSYS, so that libraries use a fallback.
    Unknown,
    /// Allowed if the low half of this argument passes the test. The kernel ignores the high half
    /// of all arguments that are tested here.
    If {
        argument: u8,
        test: ArgumentTest,
    },
    /// Allowed if one of these patterns matches the low halves of the arguments. The kernel ignores
    /// the high halves here, too.
    IfMatches(&'static [ArgumentPattern]),
}

/// Arguments by position, each with the values that it may have.
type ArgumentPattern = &'static [(u8, &'static [u32])];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentTest {
    Equals(u32),
    NoneOf(&'static [u32]),
    HasNoBit(u32),
}

fn allow_all(calls: &[libc::c_long]) -> BTreeMap<u32, SyscallVerdict> {
    calls.iter().map(|call| (number(*call), SyscallVerdict::Allowed)).collect()
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// Compiles a filter. Returns `None` on an architecture that we do not support.
pub(crate) fn compile(profile: Profile) -> Option<BpfProgram> {
    let list = match profile {
        Profile::Interpreter => interpreter::list(),
        Profile::Programs => programs::list(),
        Profile::Fetching => fetching::list(),
        Profile::Entering => entering::list(),
    };
    filter::compile(&list)
}

/// Compiles a filter and loads it in this process.
pub(crate) fn load_filter(profile: Profile) -> Result<(), Errno> {
    let program = compile(profile).ok_or(Errno::ENOSYS)?;
    apply_filter(&program).map_err(|_| Errno::last())
}

/// Refuses shared anonymous memory in this process and its descendants.
pub(crate) fn refuse_shared_memory() -> Result<(), Errno> {
    let program = shared_memory::compile().ok_or(Errno::ENOSYS)?;
    apply_filter(&program).map_err(|_| Errno::last())
}

/// Serializes a filter, for a process that loads it itself.
pub(crate) fn to_bytes(program: &BpfProgram) -> Vec<u8> {
    let instruction = |i: &sock_filter| {
        let [c1, c2] = i.code.to_ne_bytes();
        let [k1, k2, k3, k4] = i.k.to_ne_bytes();
        [c1, c2, i.jt, i.jf, k1, k2, k3, k4]
    };
    program.iter().flat_map(instruction).collect()
}
