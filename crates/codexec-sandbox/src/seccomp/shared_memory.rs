//! A filter beside a guest's own, for where there are no cgroups.

use seccompiler::{BpfProgram, sock_filter};

use super::filter::{
    ALLOW, ARGUMENTS, JUMP_IF_ANY_BIT, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL, MACHINE, NUMBER, end, load,
    machine, refuse,
};
use super::number;

pub(super) const SMALL_BYTES: u32 = 16 << 10;

/// THREAT[RES-9]: pages of shared anonymous memory stay when they are unmapped or dropped with
/// `MADV_DONTNEED`, and no file in `/proc` counts them then. Shared files still work: they lie in
/// the workspace, whose size is bounded. Small pieces are let through, as programs have a few of
/// them; a process can have only so many mappings.
pub(super) fn program() -> Option<BpfProgram> {
    let jump = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    let (shared, anonymous) = (libc::MAP_SHARED.unsigned_abs(), libc::MAP_ANONYMOUS.unsigned_abs());
    let mut program = vec![
        load(MACHINE),
        // A guest's own filter kills what is made for another machine.
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
