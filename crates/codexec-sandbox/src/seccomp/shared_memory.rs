//! A second filter, for guests on hosts without cgroups.

use seccompiler::{BpfProgram, sock_filter};

use super::filter::{
    ALLOW, ARGUMENTS, JUMP_IF_ANY_BIT, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL, MACHINE, NUMBER, end, load,
    machine, refuse,
};
use super::number;

pub(super) const SMALL_BYTES: u32 = 16 << 10;

/// Refuses large mappings of shared anonymous memory.
///
/// THREAT[RES-9]: pages of shared anonymous memory stay allocated when they are unmapped or dropped
/// with `MADV_DONTNEED`, and no file in `/proc` counts them then. Shared mappings of files still
/// work, because the workspace has a limited size. Small mappings are allowed, because programs
/// need a few of them and the number of mappings per process is limited.
pub(super) fn compile() -> Option<BpfProgram> {
    let jump = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let (shared, anonymous) = (libc::MAP_SHARED.unsigned_abs(), libc::MAP_ANONYMOUS.unsigned_abs());
    let mut program = vec![
        load(MACHINE),
        // The guest's main filter kills calls of other architectures.
        jump(JUMP_IF_EQUAL, machine()?, 0, 10),
        load(NUMBER),
        jump(JUMP_IF_EQUAL, number(libc::SYS_mmap), 0, 8),
        load(ARGUMENTS + 8 * 3),
        jump(JUMP_IF_ANY_BIT, shared, 0, 6),
        jump(JUMP_IF_ANY_BIT, anonymous, 0, 5),
        load(ARGUMENTS + 8 + 4),
        jump(JUMP_IF_EQUAL, 0, 0, 2),
        load(ARGUMENTS + 8),
        jump(JUMP_IF_AT_LEAST, SMALL_BYTES + 1, 0, 1),
    ];
    program.extend(refuse(libc::EPERM));
    program.push(end(ALLOW));
    Some(program)
}
